package host

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"dsh/internal/compose"
)

var errNoEvaluator = errors.New("expressions cannot be evaluated here")

// evaluated is v with its expressions replaced by their values. name says what
// v is, for errors.
func (r *Row) evaluated(name string, v compose.Value) (compose.Value, error) {
	e := evaluation{evaluator: r.host.options.Evaluator, scope: r.scope}
	v, err := e.value(r.ctx, name, v)
	if _, none := v.(Undefined); none {
		v = nil
	}
	return v, err
}

// evaluation replaces expressions.
type evaluation struct {
	evaluator Evaluator
	scope     func() Scope // made for the first expression
	made      *Scope
}

func (e *evaluation) value(ctx context.Context, name string, v compose.Value) (compose.Value, error) {
	switch v := v.(type) {
	case compose.Expr:
		return e.expression(ctx, name, v)
	case *compose.List:
		list := &compose.List{Items: make([]compose.Value, len(v.Items))}
		for i, item := range v.Items {
			value, err := e.value(ctx, fmt.Sprintf("%s[%d]", name, i), item)
			if err != nil {
				return nil, err
			}
			if _, none := value.(Undefined); none {
				value = nil // as JSON has it
			}
			list.Items[i] = value
		}
		return list, nil
	case *compose.Map:
		m := &compose.Map{}
		for key, item := range v.All() {
			value, err := e.value(ctx, name+"."+key, item)
			if err != nil {
				return nil, err
			}
			if _, none := value.(Undefined); !none {
				m.Set(key, value)
			}
		}
		return m, nil
	default:
		return v, nil
	}
}

func (e *evaluation) expression(ctx context.Context, name string, expr compose.Expr) (compose.Value, error) {
	if e.evaluator == nil {
		return nil, fmt.Errorf("%s: %w", name, errNoEvaluator)
	}
	if e.made == nil {
		scope := e.scope()
		e.made = &scope
	}
	value, err := e.evaluator.Evaluate(ctx, expr.Text, *e.made)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

// scope is what the expressions of the row see: what it injects, and the slots.
func (r *Row) scope() Scope {
	h := r.host
	h.mu.Lock()
	others := make([]string, 0, len(h.candidates))
	for k := range h.candidates {
		others = append(others, k.service)
	}
	h.mu.Unlock()
	slices.Sort(others)
	return h.scope(r.bound, r.realms, slices.Compact(others))
}

// scope is what expressions see of what is bound and of the slots; others are
// the services of the tree.
func (h *Host) scope(bound map[key]*Row, realms realms, others []string) Scope {
	s := Scope{Services: map[string]any{}}
	for k, provider := range bound {
		if provider == nil {
			s.Services[k.service] = Undefined{}
		} else {
			s.Services[k.service] = expressed(provider.provided[k])
		}
	}
	for k, value := range h.slots.provided {
		if _, known := s.Services[k.service]; !known && realms.key(k.service) == k {
			s.Services[k.service] = expressed(value)
		}
	}
	for _, service := range others {
		if _, known := s.Services[service]; !known {
			s.Others = append(s.Others, service)
		}
	}
	return s
}

// expressed is what expressions see of a service: that it is there, unless it
// says more.
func expressed(value any) any {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer && v.IsNil() {
		return Undefined{}
	}
	switch value := value.(type) {
	case Expressible:
		return value.Expression()
	case string, bool, int, float64, map[string]any, []any, []string:
		return value
	default:
		return struct{}{}
	}
}
