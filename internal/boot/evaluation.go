package boot

import (
	"time"

	"dsh/internal/boot/eval"
	"dsh/internal/boot/host"
)

// newEvaluator is what gives the expressions of the run their values. It
// starts no process before the first one.
func (r *run) newEvaluator() *eval.Evaluator {
	// All expressions of a start come at once. What runs for days then has no
	// second process that waits for a reload.
	const idle = 250 * time.Millisecond
	return eval.New(eval.Options{Environ: r.snapshot.List(), Home: r.req.Env.Home.Dir(), Dir: r.req.Env.Dir, Idle: idle})
}

// expressible is what expressions see of the slots.
func (r *run) expressible() map[string]any {
	services := map[string]any{}
	for name, value := range r.slots() {
		services[name] = map[string]any{}
		if e, ok := value.(host.Expressible); ok {
			services[name] = e.Expression()
		}
	}
	return services
}
