package advisory

import (
	"math"
	"strings"
)

// severity is what a vector of CVSS 3 comes to. Those of other scales are not
// understood; who gives them says it in a word as well.
func (s score) severity() Severity {
	if s.Type != "CVSS_V3" {
		return Unrated
	}
	base, ok := cvss3(s.Score)
	switch {
	case !ok || base == 0:
		return Unrated
	case base < 4:
		return Low
	case base < 7:
		return Moderate
	case base < 9:
		return High
	}
	return Critical
}

// cvssWeights are the weights of the base metrics.
// Source: https://www.first.org/cvss/v3-1/specification-document, section 7.4.
var cvssWeights = map[string]map[string]float64{
	"AV": {"N": 0.85, "A": 0.62, "L": 0.55, "P": 0.2},
	"AC": {"L": 0.77, "H": 0.44},
	"PR": {"N": 0.85, "L": 0.62, "H": 0.27},
	"UI": {"N": 0.85, "R": 0.62},
	"S":  {"U": 0, "C": 1},
	"C":  {"H": 0.56, "L": 0.22, "N": 0},
	"I":  {"H": 0.56, "L": 0.22, "N": 0},
	"A":  {"H": 0.56, "L": 0.22, "N": 0},
}

// cvss3 is the base score of a vector, by the equations of section 7.1 there.
func cvss3(vector string) (base float64, ok bool) {
	parts := strings.Split(vector, "/")
	if parts[0] != "CVSS:3.0" && parts[0] != "CVSS:3.1" {
		return 0, false
	}
	weight := map[string]float64{}
	privileges := ""
	for _, part := range parts[1:] {
		metric, value, _ := strings.Cut(part, ":")
		w, known := cvssWeights[metric][value]
		if cvssWeights[metric] == nil {
			continue // of the time or the environment
		}
		if !known {
			return 0, false
		}
		if metric == "PR" {
			privileges = value
		}
		weight[metric] = w
	}
	if len(weight) != len(cvssWeights) {
		return 0, false
	}
	changed := weight["S"] == 1
	if changed {
		switch privileges {
		case "L":
			weight["PR"] = 0.68
		case "H":
			weight["PR"] = 0.5
		}
	}
	sub := 1 - (1-weight["C"])*(1-weight["I"])*(1-weight["A"])
	impact := 6.42 * sub
	if changed {
		impact = 7.52*(sub-0.029) - 3.25*math.Pow(sub-0.02, 15)
	}
	if impact <= 0 {
		return 0, true
	}
	total := impact + 8.22*weight["AV"]*weight["AC"]*weight["PR"]*weight["UI"]
	if changed {
		total *= 1.08
	}
	return roundUp(min(total, 10)), true
}

// roundUp is the smallest number with one decimal that is not less, as the
// specification's appendix A has it, so that no machine's arithmetic matters.
func roundUp(x float64) float64 {
	n := int(math.Round(x * 100_000))
	if n%10_000 == 0 {
		return float64(n) / 100_000
	}
	return float64(n/10_000+1) / 10
}
