package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/compose"
)

// TestApply goes from one tree to another and looks at which rows were started
// once more.
func TestApply(t *testing.T) {
	for name, c := range map[string]struct{ before, after, starts, want string }{
		"nothing changes": {
			"- {id: a, name: give:x, config: {k: 1}}\n- {id: b, name: need:x}",
			"- {id: a, name: give:x, config: {k: 1}}\n- {id: b, name: need:x}",
			"a 1 b 1", "a active\nb active",
		},
		"the order changes": {
			"- {id: a, name: give:x}\n- {id: b, name: need:x}",
			"- {id: b, name: need:x}\n- {id: a, name: give:x}",
			"a 1 b 1", "b active\na active",
		},
		"a config changes": {
			"- {id: a, name: give:x, config: 1}\n- {id: b, name: need:x}\n- {id: c, name: p}",
			"- {id: a, name: give:x, config: 2}\n- {id: b, name: need:x}\n- {id: c, name: p}",
			"a 2 b 2 c 1", "a active\nb active\nc active",
		},
		"a key changes that means nothing": {
			"- {id: a, name: p, note: 1}", "- {id: a, name: p, note: 2}", "a 1", "a active",
		},
		"a name changes": {
			"- {id: a, name: p}", "- {id: a, name: q}", "a 2", "a active",
		},
		"rows come and go": {
			"- {id: a, name: p}\n- {id: b, name: p}", "- {id: b, name: p}\n- {id: c, name: p}", "a 1 b 1 c 1", "b active\nc active",
		},
		"a provider goes": {
			"- {id: a, name: give:x}\n- {id: b, name: need:x}", "- {id: b, name: need:x}", "a 1 b 1", "b waiting: waits for x (no row of the tree provides it)",
		},
		"another row provides": {
			"- {id: a, name: give:x slowstop:1s}\n- {id: b, name: need:x}", "- {id: c, name: give:x}\n- {id: b, name: need:x}", "a 1 b 2 c 1", "c active\nb active",
		},
		"what goes is gone before others start": {
			"- {id: a, name: port slowstop:1s}\n- {id: b, name: p}", "- {id: b, name: p}\n- {id: c, name: port slowstop:1s}", "a 1 b 1 c 1", "b active\nc active",
		},
		"a row is switched off and another on": {
			"- {id: a, name: p}\n- {id: b, name: p, disabled: true}", "- {id: a, name: p, disabled: true}\n- {id: b, name: p}", "a 1 b 1", "a off\nb active",
		},
		"a waiting row is switched off": {
			"- {id: a, name: need:x}", "- {id: a, name: need:x, disabled: true}", "a 0", "a off",
		},
		"a failed row is tried again": {
			"- {id: a, name: fail}\n- {id: b, name: p}", "- {id: a, name: fail}\n- {id: b, name: p}", "a 2 b 1", "a failed: does not start\nb active",
		},
		"a row of a group changes": {
			"- {id: g, name: 'cordis:group', config: [{id: a, name: p, config: 1}, {id: b, name: p}]}",
			"- {id: g, name: 'cordis:group', config: [{id: a, name: p, config: 2}, {id: b, name: p}]}",
			"g/a 2 g/b 1", "g active\ng/a active\ng/b active",
		},
		"a group changes": {
			"- {id: g, name: 'cordis:group', config: [{id: a, name: p}]}",
			"- {id: g, name: 'cordis:group', intercept: {x: 1}, config: [{id: a, name: p}]}",
			"g/a 2", "g active\ng/a active",
		},
		"a realm changes": {
			"- {id: a, name: give:x}\n- {id: b, name: need:x}", "- {id: a, name: give:x, isolate: {x: true}}\n- {id: b, name: need:x}",
			"a 2 b 1", "a active\nb waiting: waits for x (only rows of another realm provide it: a)",
		},
		"a row goes into a group": {
			"- {id: a, name: p}", "- {id: g, name: 'cordis:group', config: [{id: a, name: p}]}", "a 1 g/a 1", "g active\ng/a active",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world, h *host.Host) {
				apply(t, h, c.before)
				apply(t, h, c.after)
				same(t, states(h), c.want)
				words := strings.Fields(c.starts)
				for i := 0; i < len(words); i += 2 {
					if got := string(rune('0' + w.startsOf(words[i]))); got != words[i+1] {
						t.Errorf("%s was started %s times, not %s", words[i], got, words[i+1])
					}
				}
				w.laws(t, false)
			})
		})
	}
}

// TestApplyPutsBack applies trees that do not start.
func TestApplyPutsBack(t *testing.T) {
	const before = "- {id: a, name: give:x, config: 1}\n- {id: b, name: need:x}\n- {id: c, name: p}\n- {id: bad, name: fail}\n"
	const was = "a active\nb active\nc active\nbad failed: does not start\n"
	for name, c := range map[string]struct{ after, want string }{
		"a changed row fails": {
			"- {id: a, name: give:x fail, config: 2}\n- {id: b, name: need:x}\n- {id: n, name: p}",
			"apply the changed rows: row a (give:x fail): does not start",
		},
		"a new row fails": {
			before + "- {id: n, name: fail}",
			"apply the changed rows: row n (fail): does not start",
		},
		"new rows cannot be": {
			before + "- {id: n, name: unknown}\n- {id: m, name: p, inject: 5}",
			"apply the changed rows: row n (unknown): there is no plugin unknown; row m (p): inject: expected a list of services, or a mapping, not 5",
		},
		"a dependent fails": {
			strings.Replace(before, "config: 1", "config: 3", 1),
			"apply the changed rows: row b (need:x): does not start",
		},
		"the tree cannot be": {
			"- {id: a, name: p}\n- {id: a, name: p}",
			"mount the rows: duplicate loader entry id: a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world, h *host.Host) {
				apply(t, h, before)
				if name == "a dependent fails" {
					w.mu.Lock()
					w.broken["b"] = true
					w.mu.Unlock()
				}
				err := h.Apply(t.Context(), rows(t, c.after))
				if err == nil || !strings.HasPrefix(err.Error(), c.want) {
					t.Error(err)
				}
				if broken, ok := errors.AsType[*host.ApplyError](err); ok && name == "a dependent fails" {
					if len(broken.Back) != 1 || broken.Back[0].Path != "b" {
						t.Error(err)
					}
					return
				}
				same(t, states(h), was)
				if got := w.seen["a config"]; got != "1" {
					t.Errorf("the config is %v", got)
				}
			})
		})
	}
}

func TestAppliesOneAfterTheOther(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		apply(t, h, "- {id: a, name: slow:1s, config: 0}")
		for _, config := range []string{"1", "2", "3"} {
			go func() {
				if err := h.Apply(t.Context(), rows(t, "- {id: a, name: slow:1s, config: "+config+"}")); err != nil {
					t.Error(err)
				}
			}()
		}
		time.Sleep(10 * time.Second)
		same(t, states(h), "a active")
		if w.startsOf("a") != 4 {
			t.Error(w.startsOf("a"))
		}
	})
}

func TestStopDuringApply(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		apply(t, h, "- {id: a, name: p, config: 1}")
		done := make(chan error)
		go func() { done <- h.Apply(t.Context(), rows(t, "- {id: a, name: slow:10s, config: 2}")) }()
		time.Sleep(time.Second)
		begin := time.Now()
		if err := h.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; err == nil || time.Since(begin) != 0 {
			t.Error(err, time.Since(begin))
		}
		same(t, states(h), "a off")
	})
}

func TestApplyEndsWithContext(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		apply(t, h, "- {id: a, name: p, config: 1}")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Apply(ctx, rows(t, "- {id: a, name: slow:10s, config: 2}")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		settle(t, h)
		same(t, states(h), "a active")
		if got := w.seen["a config"]; got != "1" {
			t.Errorf("the config is %v", got)
		}
	})
}

// evaluator knows a few expressions.
type evaluator struct{ off bool }

func (e *evaluator) Evaluate(_ context.Context, text string, s host.Scope) (compose.Value, error) {
	switch text {
	case "off":
		return e.off, nil
	case "undefined":
		return host.Undefined{}, nil
	case "throw":
		return nil, errors.New("it throws")
	}
	value, ok := s.Services[text]
	if !ok {
		return nil, errors.New("no service " + text + ", but " + strings.Join(s.Others, " "))
	}
	if _, none := value.(host.Undefined); none {
		return host.Undefined{}, nil
	}
	if value == struct{}{} {
		return "there", nil
	}
	return value, nil
}

func TestExpressions(t *testing.T) {
	e := &evaluator{}
	const tree = `
- {id: a, name: need:x want:y, config: {x: !!js x, list: [!!js undefined, !!js slot, 5], gone: !!js undefined, deep: {y: !!js y}}}
- {id: x, name: give:x}
- {id: b, name: p, config: !!js undefined}
- {id: c, name: p, config: {k: [1, {j: !!js throw}]}}
- {id: d, name: p, disabled: !!js off}
- {id: e, name: p, disabled: !!js undefined}
- {id: f, name: p, disabled: !!js throw}
- {id: g, name: p, disabled: !!js x}
- {id: h, name: p, config: !!js x}
- {id: i, name: unknown, disabled: !!js slot}
- {id: j, name: p, config: !!js opaque}
- {id: k, name: p, config: !!js nothing}
`
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		apply(t, h, tree)
		want := `
			a active
			x active
			b active
			c failed: config.k[1].j: it throws
			d active
			e active
			f failed: disabled: it throws
			g failed: disabled: no service x, but x
			h failed: config: no service x, but x
			i off
			j active
			k active`
		same(t, states(h), want)
		for path, want := range map[string]string{
			"a": `{"x":"x","list":[null,"from dsh",5],"deep":{}}`, "b": "null", "j": `"there"`, "k": "null",
		} {
			if got := w.seen[path+" config"]; got != want {
				t.Errorf("%s: %v", path, got)
			}
		}
		e.off = true
		apply(t, h, tree)
		same(t, states(h), strings.Replace(want, "d active", "d off", 1))
		if w.startsOf("a") != 1 || w.startsOf("c") != 0 {
			t.Error(w.starts)
		}
		// A provider that is replaced evaluates anew.
		apply(t, h, strings.Replace(tree, "{id: x, name: give:x}", "{id: x2, name: give:x}", 1))
		if got := w.seen["a config"]; got != `{"x":"x2","list":[null,"from dsh",5],"deep":{}}` {
			t.Error(got)
		}
	}, func(o *host.Options) {
		o.Evaluator = e
		var none *host.Host
		o.Slots["opaque"] = make(chan int)
		o.Slots["nothing"] = none
	})
}

func TestCheck(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		apply(t, h, "- {id: a, name: p, config: !!js slot}\n- {id: g, name: 'cordis:group', config: []}")
		same(t, states(h), "a failed: \"from dsh\" is not allowed\ng active")
	}, func(o *host.Options) {
		o.Evaluator = &evaluator{}
		o.Check = func(_ host.RowSpec, config compose.Value) error {
			return errors.New(compose.Show(config) + " is not allowed")
		}
	})
}

func TestIntercept(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		apply(t, h, `
- id: g
  name: cordis:group
  intercept: {x: 1, y: 2}
  config:
  - {id: a, name: p, intercept: {x: !!js slot}}
- {id: b, name: p}`)
		for path, want := range map[string]string{"g/a": `[1,"from dsh"]`, "b": `[]`} {
			if got := compose.Show(&compose.List{Items: w.row(path).Intercept("x")}); got != want {
				t.Errorf("%s: %s", path, got)
			}
		}
	}, func(o *host.Options) { o.Evaluator = &evaluator{} })
}

func TestInclude(t *testing.T) {
	files := map[string]string{
		"one":  "- {id: a, name: need:x}\n- {name: 'cordis:include', config: two}",
		"two":  "- {id: x, name: give:x}",
		"loop": "- {id: in, name: 'cordis:include', config: loop}",
	}
	include := func(row host.RowSpec) ([]compose.Row, error) {
		config, _ := row.Entry.Get("config")
		file, ok := files[config.(string)]
		if !ok {
			return nil, errors.New("there is no such file")
		}
		return rows(t, file), nil
	}
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		apply(t, h, `
- {id: i, name: 'cordis:include', config: one}
- {id: j, name: 'cordis:include', config: none}
- {id: k, name: 'cordis:include', config: none, disabled: true}`)
		same(t, states(h), `
			i active
			i/a active
			i/#2 active
			i/#2/x active
			j failed: there is no such file
			k off`)
		files["two"] = "- {id: x, name: give:x}\n- {id: n, name: p}"
		apply(t, h, "- {id: i, name: 'cordis:include', config: one}")
		if w.startsOf("i/a") != 1 || w.startsOf("i/#2/n") != 1 {
			t.Error(w.starts)
		}
		err := h.Apply(t.Context(), rows(t, "- {id: i, name: 'cordis:include', config: loop}"))
		if err == nil || !strings.Contains(err.Error(), "includes nest deeper than 16") {
			t.Error(err)
		}
	}, func(o *host.Options) { o.Include = include })
}

// TestEventMayLook lets the receiver of events ask the host.
func TestEventMayLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		o := w.options()
		var h *host.Host
		looked := 0
		o.Event = func(e host.Event) {
			if len(h.Rows()) == 1 {
				looked++
			}
			h.Log(e.Path)
		}
		h = host.New(o)
		apply(t, h, "- {id: a, name: p}")
		if looked != 2 {
			t.Error(looked)
		}
		if err := h.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
