package action

import (
	"slices"
	"strconv"

	"dsh/internal/compose"
	"dsh/internal/compose/jsexpr"
)

// ExpressionInfo is a `!!js` expression. It is evaluated at boot, not here.
type ExpressionInfo struct {
	Key      string   `json:"key"`
	Text     string   `json:"text"`
	Env      []EnvUse `json:"env"`      // variables that it reads
	Services []string `json:"services"` // what it reads besides
	Problem  string   `json:"problem,omitempty"`
}

// EnvUse is an environment variable, and whether it is set where dsh runs.
type EnvUse struct {
	Name string `json:"name"`
	Set  bool   `json:"set"`
}

// expressions are those at and below a path in the value of a key.
func (e *explainer) expressions(v compose.Value, path, rest []string, key string, r *RowHistory) {
	below, _ := at(v, rest)
	masked, _ := at(e.value(v, key), rest)
	e.eachExpression(below, masked, path, r)
}

func (e *explainer) eachExpression(v, masked compose.Value, path []string, r *RowHistory) {
	switch v := v.(type) {
	case compose.Expr:
		text := v.Text
		if m, ok := masked.(compose.Expr); ok {
			text = m.Text
		}
		r.Expressions = append(r.Expressions, e.expression(v.Text, text, compose.PathText(path)))
	case *compose.Map:
		for key, item := range v.All() {
			m, _ := at(masked, []string{key})
			e.eachExpression(item, m, append(slices.Clip(path), key), r)
		}
	case *compose.List:
		for i, item := range v.Items {
			index := strconv.Itoa(i)
			m, _ := at(masked, []string{index})
			e.eachExpression(item, m, append(slices.Clip(path), index), r)
		}
	}
}

// expression is what can be told of one without running it.
func (e *explainer) expression(text, masked, key string) ExpressionInfo {
	info := ExpressionInfo{Key: key, Text: masked, Env: []EnvUse{}, Services: []string{}}
	parsed, err := jsexpr.Parse(text)
	if err != nil {
		info.Problem = err.Error()
		return info
	}
	for _, name := range parsed.Env {
		info.Env = append(info.Env, EnvUse{name, e.env.Getenv(name) != ""})
	}
	info.Services = append(info.Services, parsed.Services...)
	if parsed.Statement {
		info.Problem = "it is no expression but statements"
	}
	return info
}
