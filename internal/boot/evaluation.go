package boot

import (
	"dsh/internal/boot/host"
)

// evaluation is what gives expressions their values, made when it is first
// needed.
type evaluation struct{ evaluator host.Evaluator }

func (r *run) evaluator() host.Evaluator { return r.eval.evaluator }

func (r *run) closeEvaluator() {}

// expressible is what expressions see before any row: the slots.
func (r *run) expressible() map[string]any {
	return map[string]any{}
}
