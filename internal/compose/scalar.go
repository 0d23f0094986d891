package compose

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// resolvePlain gives an unquoted scalar its type, as the JSON schema of
// js-yaml 4.3 does: null, booleans, integers, floats, else a string. There
// are no timestamps, and no underscores in numbers.
func resolvePlain(text string) Value {
	if v, ok := resolveTyped(text); ok {
		return v
	}
	return text
}

// resolveTyped is the value of an unquoted scalar that is no string.
func resolveTyped(text string) (Value, bool) {
	if text == "" || isNull(text) {
		return nil, true
	}
	switch text[0] {
	case 't', 'T', 'f', 'F':
		if b, ok := parseBool(text); ok {
			return b, true
		}
	case '-', '+', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if f, ok := parseInteger(text); ok {
			return f, true
		}
		if f, ok := parseFloat(text); ok {
			return f, true
		}
	}
	return nil, false
}

func isNull(text string) bool {
	return text == "~" || text == "null" || text == "Null" || text == "NULL"
}

func parseBool(text string) (value, ok bool) {
	switch text {
	case "true", "True", "TRUE":
		return true, true
	case "false", "False", "FALSE":
		return false, true
	}
	return false, false
}

func parseInteger(text string) (float64, bool) {
	digits := text
	negative := false
	if digits != "" && (digits[0] == '-' || digits[0] == '+') {
		negative = digits[0] == '-'
		digits = digits[1:]
	}
	if digits == "0" {
		return 0, true // also for -0: only a float can be negative zero
	}
	base, valid := 10, "0123456789"
	if len(digits) > 1 && digits[0] == '0' {
		switch digits[1] {
		case 'b':
			base, valid = 2, "01"
		case 'o':
			base, valid = 8, "01234567"
		case 'x':
			base, valid = 16, "0123456789abcdefABCDEF"
		}
		if base != 10 {
			digits = digits[2:]
		}
	}
	if digits == "" || strings.Trim(digits, valid) != "" {
		return 0, false
	}
	var f float64
	if n, err := strconv.ParseUint(digits, base, 53); err == nil {
		f = float64(n)
	} else if base == 10 {
		f, _ = strconv.ParseFloat(digits, 64)
	} else {
		n, _ := new(big.Int).SetString(digits, base)
		f, _ = new(big.Float).SetInt(n).Float64()
	}
	if negative {
		f = -f
	}
	return f, !math.IsInf(f, 0)
}

func parseFloat(text string) (float64, bool) {
	rest := text
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		rest = rest[1:]
	}
	switch rest {
	case ".inf", ".Inf", ".INF":
		if text[0] == '-' {
			return math.Inf(-1), true
		}
		return math.Inf(1), true
	case ".nan", ".NaN", ".NAN":
		return math.NaN(), rest == text
	}
	whole := digitsAt(rest, 0)
	end := whole
	if end < len(rest) && rest[end] == '.' {
		end = digitsAt(rest, end+1)
		// A number that begins with its point has no sign and has digits.
		if whole == 0 && (end == 1 || rest != text) {
			return 0, false
		}
	} else if whole == 0 {
		return 0, false
	}
	if end < len(rest) && (rest[end] == 'e' || rest[end] == 'E') {
		end++
		if end < len(rest) && (rest[end] == '-' || rest[end] == '+') {
			end++
		}
		exponent := end
		if end = digitsAt(rest, end); end == exponent {
			return 0, false
		}
	}
	if end != len(rest) {
		return 0, false
	}
	f, _ := strconv.ParseFloat(text, 64)
	return f, !math.IsInf(f, 0)
}

// digitsAt is the end of the run of decimal digits that starts at i.
func digitsAt(s string, i int) int {
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}
