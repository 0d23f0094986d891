package live_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"dsh/internal/action"
	"dsh/internal/boot/host"
	"dsh/internal/boot/live"
	"dsh/internal/boot/slot"
	"dsh/internal/compose"
	"dsh/internal/installation"
	"dsh/internal/profile"
)

// BenchmarkEdit is the time from an edit of the patch file of the web profile
// until its row runs with it: 50 ms of waiting for more edits, composing, checking
// and the restart of the row. It is to stay below 150 ms.
func BenchmarkEdit(b *testing.B) {
	home, err := profile.ResolveHome(b.TempDir(), os.Getenv)
	if err != nil {
		b.Fatal(err)
	}
	name, err := profile.ParseName("web")
	if err != nil {
		b.Fatal(err)
	}
	env := action.Env{Home: home, Dir: b.TempDir(), Getenv: os.Getenv, Installation: installation.Embedded()}
	composed, err := action.Compose(b.Context(), env, action.ComposeOptions{Layers: action.Layers{Name: name}})
	if err != nil {
		b.Fatal(err)
	}
	started := make(chan string, 100)
	h := host.New(host.Options{
		Registry: func(string) (host.Plugin, bool) {
			return host.Plugin{Start: func(_ context.Context, r *host.Row) error {
				if r.ID() == "probe" {
					started <- compose.Show(r.Config())
				}
				return nil
			}}, true
		},
		Evaluator: nothing{},
		Slots:     map[string]any{"webStartup": 0, "webserver": 0},
	})
	if err := h.Apply(b.Context(), composed.Tree.Rows); err != nil {
		b.Fatal(err)
	}
	layers := live.New(composed.Tree, func(ctx context.Context) (live.Composition, error) {
		c, err := action.Compose(ctx, env, action.ComposeOptions{Layers: action.Layers{Name: name}})
		if err != nil {
			return live.Composition{}, err
		}
		action.Findings(env, c)
		return live.Composition{Tree: c.Tree, Use: func(ctx context.Context, _ bool) error { return h.Apply(ctx, c.Tree.Rows) }}, nil
	})
	ctx, end := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); layers.Run(ctx) }()
	layers.Subscribe(func(r slot.Reload) {
		if r.Err != nil {
			b.Error(r.Err)
		}
	})
	file := composed.Profile.Dir + "/cordis.patch.yml"
	stop, err := live.Watch([]live.File{{Path: file}}, 50*time.Millisecond, layers.Changed, func(err error) { b.Error(err) })
	if err != nil {
		b.Fatal(err)
	}
	var took time.Duration
	n := 0
	for b.Loop() {
		n++
		began := time.Now()
		if err := os.WriteFile(file, fmt.Appendf(nil, "- insert: [{id: probe, name: probe, config: {n: %d}}]\n", n), 0o644); err != nil {
			b.Fatal(err)
		}
		for want := fmt.Sprintf(`{"n":%d}`, n); <-started != want; {
		}
		took += time.Since(began)
		time.Sleep(60 * time.Millisecond) // the next edit is one of its own
	}
	b.ReportMetric(float64(took.Milliseconds())/float64(n), "ms/edit")
	stop()
	end()
	<-ended
	if err := h.Stop(context.Background()); err != nil {
		b.Error(err)
	}
}

// nothing gives every expression the value null.
type nothing struct{}

func (nothing) Evaluate(context.Context, string, host.Scope) (compose.Value, error) { return nil, nil }
