package check

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"dsh/internal/compose"
	"dsh/internal/compose/jsexpr"
)

// value looks for expressions in a value of the patch. row is the id of the
// row that it belongs to.
func (w writing) value(v compose.Value, path []string, row string) {
	switch v := v.(type) {
	case compose.Expr:
		w.expression(v.Text, path, row)
	case string:
		w.untagged(v, path, row)
	case *compose.List:
		if w.seen[v] {
			return
		}
		w.seen[v] = true
		for i, item := range v.Items {
			w.value(item, below(path, strconv.Itoa(i)), row)
		}
	case *compose.Map:
		if v == nil || w.seen[v] {
			return
		}
		w.seen[v] = true
		if get(v, "name") != "" && id(v) != "" {
			row = id(v)
		}
		for key, item := range v.All() {
			w.value(item, below(path, key), row)
		}
	}
}

func (w writing) expression(text string, path []string, row string) {
	f := Finding{Row: row, Subject: compose.PathText(path)}
	e, err := jsexpr.Parse(text)
	if wrong, ok := errors.AsType[*jsexpr.SyntaxError](err); ok {
		f.Code, f.Severity = ExpressionSyntax, Error
		f.Message = fmt.Sprintf("the !!js expression does not parse: line %d, column %d of it: %s", wrong.Line, wrong.Column, wrong.Problem)
		f.Remedy = "write one JavaScript expression, as in !!js process.env.NAME ?? 'text'"
		w.add(w.step, path, f)
		return
	}
	if err != nil {
		return
	}
	if e.Statement {
		f.Code, f.Severity = ExpressionStatements, Warning
		f.Message = "the !!js text is statements and no expression, so its value is that of its last statement"
		f.Remedy = "write one expression; an object goes in brackets: !!js '({a: 1})'"
		w.add(w.step, path, f)
	}
	if e.ReadsTree {
		f.Code, f.Severity = ExpressionReadsTree, Warning
		f.Message = "the !!js expression reads ctx.loader.entries, so its value depends on the order in which rows are made"
		f.Remedy = "say it without looking at other rows: disabled: true or false"
		if row != "" && !w.alone {
			f.Remedy = fmt.Sprintf("say it without looking at other rows: disabled: true or false (%s)", w.command("disable", row))
		}
		w.add(w.step, path, f)
	}
}

// meantAsExpression says whether a text was meant as an expression, which one,
// and whether it has its tag inside the quotes.
func meantAsExpression(text string) (expr string, tagged, ok bool) {
	text = strings.TrimSpace(text)
	if rest, found := strings.CutPrefix(text, "!!js"); found && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n")) {
		return strings.TrimSpace(rest), true, true
	}
	name, env := strings.CutPrefix(text, "process.env.")
	return text, false, env && name != "" && !strings.ContainsAny(name[:1], " .")
}

// untagged finds a text that was meant as an expression.
func (w writing) untagged(text string, path []string, row string) {
	expr, tagged, ok := meantAsExpression(text)
	if !ok || len(path) == 0 {
		return
	}
	f := Finding{Code: ExpressionUntagged, Severity: Warning, Row: row, Subject: compose.PathText(path)}
	f.Message = "the text looks like an expression, and has no !!js in front, so it stays a text"
	if tagged {
		f.Message = "!!js stands inside the quotes, so that it is part of a text and nothing is evaluated"
	}
	f.Remedy = "write !!js in front of the quotes: !!js '…'"
	if _, err := jsexpr.Parse(expr); err == nil && len(expr) < 60 && jsexpr.MaskLiterals(expr) == expr && !strings.ContainsAny(expr, "'\n") {
		f.Remedy = fmt.Sprintf("write !!js in front of the quotes: !!js '%s'", expr)
	}
	w.add(w.step, path, f)
}
