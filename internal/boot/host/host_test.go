package host_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/boot/host"
	"dsh/internal/compose"
)

// bubble runs a test with a host, and stops the host at its end.
func bubble(t *testing.T, f func(t *testing.T, w *world, h *host.Host), options ...func(*host.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		o := w.options()
		for _, set := range options {
			set(&o)
		}
		h := host.New(o)
		f(t, w, h)
		_ = h.Stop(t.Context())
		w.laws(t, true)
	})
}

func apply(t *testing.T, h *host.Host, tree string) {
	t.Helper()
	if err := h.Apply(t.Context(), rows(t, tree)); err != nil {
		t.Fatal(err)
	}
	settle(t, h)
}

func settle(t *testing.T, h *host.Host) {
	t.Helper()
	if err := h.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, got, want string) {
	t.Helper()
	if diff := cmp.Diff(text(want), got); diff != "" {
		t.Error(diff)
	}
}

// TestTrees mounts trees and looks at what has become of the rows.
func TestTrees(t *testing.T) {
	for name, c := range map[string]struct{ tree, want string }{
		"a row without needs": {
			"- {id: a, name: p}",
			"a active",
		},
		"rows activate by services, not by order": {
			`
			- {id: c, name: need:b}
			- {id: b, name: need:a give:b}
			- {id: a, name: give:a}`,
			`
			c active
			b active
			a active`,
		},
		"slots are there from the start": {
			"- {id: a, name: need:slot}",
			"a active",
		},
		"a slot cannot be provided": {
			"- {id: a, name: give:slot}",
			`a failed: service "slot" is dsh's own, which no row can provide`,
		},
		"rows without an id": {
			`
			- {name: p}
			- {name: p, id: ''}
			- {name: p, id: 3}`,
			`
			#1 active
			#2 active
			3 active`,
		},
		"ids that look like other paths": {
			`
			- {name: p, id: g/a}
			- {name: 'cordis:group', id: g, config: [{name: p, id: a}]}
			- {name: p, id: '#4'}
			- {name: p}`,
			`
			g/a active
			g active
			g/a#1 active
			#4 active
			#4#4 active`,
		},
		"nothing provides a service": {
			"- {id: a, name: need:x need:y need:slot}",
			"a waiting: waits for x (no row of the tree provides it); y (no row of the tree provides it)",
		},
		"what is not provided after all": {
			`
			- {id: a, name: need:x}
			- {id: b, name: may:x}
			- {id: c, name: give:x fail}
			- {id: d, name: give:x, disabled: true}
			- {id: e, name: give:x need:nothing}`,
			`
			a waiting: waits for x (row b did not provide it, row c has failed, row d is disabled, row e waits itself)
			b active
			c failed: does not start
			d off
			e waiting: waits for nothing (no row of the tree provides it)`,
		},
		"a cycle": {
			`
			- {id: a, name: need:c give:a}
			- {id: b, name: need:a give:b}
			- {id: c, name: need:b give:c}
			- {id: d, name: need:a}`,
			`
			a waiting: waits in a cycle: a needs c of c, c needs b of b, b needs a of a
			b waiting: waits in a cycle: b needs a of a, a needs c of c, c needs b of b
			c waiting: waits in a cycle: c needs b of b, b needs a of a, a needs c of c
			d waiting: waits for a (row a waits itself)`,
		},
		"a row that needs itself": {
			"- {id: a, name: need:a give:a}",
			"a waiting: waits in a cycle: a needs a of a",
		},
		"a row that could use itself": {
			"- {id: a, name: want:a give:a}",
			"a active",
		},
		"two rows that could use each other": {
			`
			- {id: a, name: want:b give:a}
			- {id: b, name: want:a give:b}`,
			`
			a active
			b active`,
		},
		"two rows that provide the same": {
			`
			- {id: a, name: give:x slow:1s}
			- {id: b, name: give:x}`,
			`
			a active
			b failed: service "x" is provided by row a already`,
		},
		"two rows that may provide the same": {
			`
			- {id: a, name: may:x slow:1s}
			- {id: b, name: give:x}
			- {id: c, name: need:x}`,
			`
			a active
			b active
			c active`,
		},
		"a row that has to go before an earlier one": {
			`
			- {id: a, name: need:y give:x}
			- {id: b, name: give:y may:x}`,
			`
			a active
			b active`,
		},
		"rows that are none": {
			`
			- {id: a}
			- {id: b, name: unknown}
			- 5
			- {id: c, name: 7}`,
			`
			a failed: the row has no plugin name
			b failed: there is no plugin unknown
			#3 failed: the row is no mapping
			c failed: the row has no plugin name`,
		},
		"inject as a list": {
			`
			- {id: a, name: p, inject: [x, slot]}
			- {id: b, name: p, inject: [5]}
			- {id: c, name: p, inject: x}`,
			`
			a waiting: waits for x (no row of the tree provides it)
			b failed: inject[0]: expected the name of a service, not 5
			c failed: inject: expected a list of services, or a mapping, not "x"`,
		},
		"inject as a mapping": {
			`
			- {id: a, name: p, inject: {x: true, slot: null}}
			- {id: b, name: p, inject: {x: false}}
			- {id: c, name: p, inject: {x: {required: false}}}
			- {id: d, name: p, inject: {x: {required: true}}}
			- {id: e, name: p, inject: {x: {}}}
			- {id: f, name: p, inject: {x: [1]}}
			- {id: g, name: want:x, inject: {x: true}}
			- {id: h, name: need:x, inject: {x: false}}`,
			`
			a waiting: waits for x (no row of the tree provides it)
			b active
			c active
			d waiting: waits for x (no row of the tree provides it)
			e waiting: waits for x (no row of the tree provides it)
			f failed: inject.x: expected true, false or {required: …}, not [1]
			g waiting: waits for x (no row of the tree provides it)
			h waiting: waits for x (no row of the tree provides it)`,
		},
		"disabled": {
			`
			- {id: a, name: p, disabled: true}
			- {id: b, name: p, disabled: false}
			- {id: c, name: p, disabled: null}
			- {id: d, name: p, disabled: yes please}
			- {id: e, name: unknown, disabled: true}`,
			`
			a off
			b active
			c active
			d off
			e off`,
		},
		"groups": {
			`
			- {id: g, name: 'cordis:group', config: [{id: a, name: need:x}, {name: p}]}
			- {id: b, name: give:x}`,
			`
			g active
			g/a active
			g/#2 active
			b active`,
		},
		"a group that waits": {
			`
			- {id: g, name: 'cordis:group', inject: [x], config: [{id: a, name: give:x}]}
			- {id: h, name: 'cordis:group', inject: [y], config: [{id: a, name: p}]}`,
			`
			g waiting: waits in a cycle: g needs x of g/a, g/a needs group g of g
			g/a waiting: waits in a cycle: g/a needs group g of g, g needs x of g/a
			h waiting: waits for y (no row of the tree provides it)
			h/a waiting: waits for group h (row h waits itself)`,
		},
		"disabled groups": {
			`
			- id: g
			  name: 'cordis:group'
			  disabled: true
			  config: [{id: a, name: p}, {id: b, name: 'cordis:group', group: true, config: [{id: c, name: p}]}]
			- id: h
			  name: 'cordis:group'
			  group: true
			  disabled: true
			  config:
			  - {id: a, name: p}
			  - {id: b, name: p, group: true, disabled: true}
			  - {id: c, name: 'cordis:group', group: true, config: [{id: d, name: p}, {id: e, name: p, group: 1}]}`,
			`
			g off
			g/a off
			g/b off
			g/b/c off
			h active
			h/a off
			h/b active
			h/c active
			h/c/d off
			h/c/e active`,
		},
		"a plugin that carries rows": {
			"- {id: g, name: give:x, group: true, config: [{id: a, name: need:x}]}",
			`
			g active
			g/a active`,
		},
		"a private realm": {
			`
			- {id: g, name: 'cordis:group', isolate: {x: true}, config: [{id: a, name: give:x}, {id: b, name: need:x}]}
			- {id: c, name: need:x}
			- {id: d, name: give:x, isolate: {x: true}}
			- {id: e, name: need:x, isolate: {x: true}}`,
			`
			g active
			g/a active
			g/b active
			c waiting: waits for x (only rows of another realm provide it: d, g/a)
			d active
			e waiting: waits for x (only rows of another realm provide it: d, g/a)`,
		},
		"a shared realm": {
			`
			- {id: a, name: give:x, isolate: {x: blue}}
			- {id: b, name: need:x, isolate: {x: blue}}
			- {id: c, name: give:x, isolate: {x: red}}
			- {id: d, name: give:x}
			- {id: e, name: need:x, isolate: {x: false, y: null, z: ''}}
			- {id: g, name: 'cordis:group', isolate: {x: green}, config: [{id: f, name: need:x, isolate: {x: red}}]}`,
			`
			a active
			b active
			c active
			d active
			e active
			g active
			g/f active`,
		},
		"realms hide slots": {
			"- {id: a, name: need:slot, isolate: {slot: true}}",
			"a waiting: waits for slot (no row of the tree provides it)",
		},
		"bad realms": {
			`
			- {id: a, name: p, isolate: {x: 5}}
			- {id: b, name: p, isolate: [x]}
			- {id: c, name: p, intercept: 5}`,
			`
			a failed: isolate.x: expected true or the name of a realm, not 5
			b failed: isolate: expected a mapping of services to true or the name of a realm, not ["x"]
			c failed: intercept: expected a mapping of services to their config, not 5`,
		},
		"a group that cannot be": {
			"- {id: g, name: 'cordis:group', inject: 5, config: [{id: a, name: p}]}",
			`
			g failed: inject: expected a list of services, or a mapping, not 5
			g/a waiting: waits for group g (row g has failed)`,
		},
		"a panic": {
			"- {id: a, name: panic}",
			"a failed: panic: out of cheese",
		},
		"what is provided against the rules": {
			`
			- {id: a, name: give:x give:x}
			- {id: b, name: p, config: !!js x}`,
			`
			a failed: service "x" is provided twice
			b failed: config: expressions cannot be evaluated here`,
		},
		"an include without a reader": {
			"- {id: a, name: 'cordis:include', config: {path: x.yml}}",
			"a failed: rows of a file cannot be included here",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world, h *host.Host) {
				apply(t, h, strings.ReplaceAll(c.tree, "\t", ""))
				same(t, states(h), c.want)
			})
		})
	}
}

func TestDuplicateIDs(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		err := h.Apply(t.Context(), rows(t, `- {id: g, name: 'cordis:group', config: [{id: a, name: p}, {id: a, name: p}]}`))
		if err == nil || err.Error() != "mount the rows in g: duplicate loader entry id: a" {
			t.Error(err)
		}
		if rows := h.Rows(); len(rows) != 0 {
			t.Error(rows)
		}
	})
}

func TestStory(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		apply(t, h, `
- {id: page, name: need:web slow:10ms}
- {id: web, name: need:db give:web}
- {id: db, name: give:db slow:30ms}
- {id: stuck, name: need:nothing}
- {id: alone, name: slow:50ms}`)
		same(t, w.story(), `
			db starting
			alone starting
			db active
			alone active
			web starting
			web active
			page starting
			page active
			stuck waiting for nothing`)

		w.row("db").Fail(errors.New("disk full"))
		settle(t, h)
		same(t, w.story(), `
			db stopping
			web stopping
			page stopping
			page waiting
			web waiting
			db failed: disk full
			page waiting for web
			web waiting for db`)
		same(t, states(h), `
			page waiting: waits for web (row web waits itself)
			web waiting: waits for db (row db has failed)
			db failed: disk full
			stuck waiting: waits for nothing (no row of the tree provides it)
			alone active`)

		if err := h.Restart(t.Context(), "db"); err != nil {
			t.Fatal(err)
		}
		if got := w.story(); !strings.HasSuffix(got, "db active\nweb starting\nweb active\npage starting\npage active\n") {
			t.Error(got)
		}

		if err := h.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		same(t, w.story(), `
			page stopping
			web stopping
			db stopping
			stuck off
			alone stopping
			page off
			alone off
			web off
			db off`)
	})
}

// TestSameStory starts and stops trees with all kinds of delays: the sorted
// events are the same.
func TestSameStory(t *testing.T) {
	tree := func(delay func() string) string {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, "- {id: r%d, name: 'give:s%d %s", i, i, delay())
			for j := range 3 {
				if n := i*7%11 + j*13; n > i {
					fmt.Fprintf(&b, " %s:s%d", [...]string{"need", "want"}[j%2], n)
				}
			}
			if i%9 == 0 {
				b.WriteString(" may:common")
			}
			if i%10 == 3 {
				b.WriteString(" fail")
			}
			b.WriteString("'}\n")
		}
		return b.String()
	}
	var want string
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, seed))
		bubble(t, func(t *testing.T, w *world, h *host.Host) {
			apply(t, h, tree(func() string {
				return fmt.Sprintf("slow:%dms slowstop:%dms", random.IntN(50), random.IntN(50))
			}))
			if err := h.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := w.story()
			if want == "" {
				want = got
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

// TestConcurrent counts the time that rows take which have nothing to do with
// each other: that of the slowest.
func TestConcurrent(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		var tree strings.Builder
		for i := range 100 {
			fmt.Fprintf(&tree, "- {id: r%d, name: 'slow:%dms slowstop:%dms need:x'}\n", i, i, 2*i)
		}
		begin := time.Now()
		apply(t, h, tree.String()+"- {id: x, name: give:x}")
		if took := time.Since(begin); took != 99*time.Millisecond {
			t.Errorf("the start took %s", took)
		}
		begin = time.Now()
		if err := h.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 198*time.Millisecond {
			t.Errorf("the stop took %s", took)
		}
	})
}

func TestOptional(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		const a, x = "- {id: a, name: want:x}\n", "- {id: x, name: give:x slow:1s}\n"
		apply(t, h, a+x)
		if w.startsOf("a") != 1 || w.seen["a x"] != "x" {
			t.Errorf("the row did not wait for what it can use: %d starts, saw %v", w.startsOf("a"), w.seen["a x"])
		}
		apply(t, h, a)
		if w.startsOf("a") != 2 || w.seen["a x"] != "" {
			t.Errorf("the service went: %d starts, saw %v", w.startsOf("a"), w.seen["a x"])
		}
		apply(t, h, a+x)
		if w.startsOf("a") != 3 || w.seen["a x"] != "x" {
			t.Errorf("the service came: %d starts, saw %v", w.startsOf("a"), w.seen["a x"])
		}
	})
}

func TestProviderGoesWhileOthersStart(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		if err := h.Apply(t.Context(), rows(t, `
- {id: a, name: need:x slow:10s}
- {id: x, name: give:x}`)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		same(t, states(h), "a starting\nx active")
		w.row("x").Fail(errors.New("gone"))
		settle(t, h)
		same(t, states(h), "a waiting: waits for x (row x has failed)\nx failed: gone")
	})
}

func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		hang := make(chan struct{})
		o := w.options()
		o.Registry = func(name string) (host.Plugin, bool) {
			switch name {
			case "never started":
				return host.Plugin{Start: func(context.Context, *host.Row) error { <-hang; return nil }}, true
			case "never stopped":
				return host.Plugin{Provides: []string{"x"}, Start: func(_ context.Context, r *host.Row) error {
					r.Provide("x", r.Path())
					r.Go(func(context.Context) error { <-hang; return nil })
					return nil
				}}, true
			}
			return w.plugin(name)
		}
		h := host.New(o)
		begin := time.Now()
		apply(t, h, `
- {id: a, name: never started}
- {id: b, name: slow:1h}
- {id: c, name: never stopped}
- {id: d, name: p, inject: [x]}`)
		if took := time.Since(begin); took != 35*time.Second {
			t.Errorf("settled after %s", took)
		}
		same(t, states(h), `
			a failed: did not start within 30s
			b failed: did not start within 30s
			c active
			d active`)
		if err := h.Restart(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "did not start within 30s") {
			t.Error(err)
		}

		begin = time.Now()
		err := h.Stop(t.Context())
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("stopped after %s", took)
		}
		if err == nil || err.Error() != "row c (never stopped): did not stop within 5s" {
			t.Error(err)
		}
		w.laws(t, true)
		close(hang)
		synctest.Wait()
		if log := h.Log("c"); len(log) != 2 || log[1].Text != "stopped, later than it should have" {
			t.Error(log)
		}
	})
}

// TestLeftRowDoesNotRunTwice changes a row that does not stop.
func TestLeftRowDoesNotRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		h := host.New(w.options())
		apply(t, h, "- {id: a, name: slowstop:1m, config: 1}")
		err := h.Apply(t.Context(), rows(t, "- {id: a, name: slowstop:1m, config: 2}"))
		if err == nil || err.Error() != "apply the changed rows: row a (slowstop:1m): did not stop within 5s; "+
			"and it does not run again as before: row a (slowstop:1m): did not stop within 5s" {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if err := h.Restart(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		same(t, states(h), "a active")
		_ = h.Stop(t.Context())
		time.Sleep(time.Minute)
		w.laws(t, true)
	})
}

func TestStopEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		h := host.New(w.options())
		apply(t, h, "- {id: a, name: slowstop:3s}")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := h.Stop(ctx)
		if err == nil || err.Error() != "row a (slowstop:3s): has not stopped: context deadline exceeded" {
			t.Error(err)
		}
		if err := h.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if err := h.Apply(t.Context(), nil); err == nil {
			t.Error("a host that has stopped takes a tree")
		}
		w.laws(t, true)
	})
}

// TestStopHurries ends the ctx of Stop while rows use all of the time they have.
func TestStopHurries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Options{Registry: func(name string) (host.Plugin, bool) {
			return host.Plugin{Provides: []string{"x"}, Start: func(_ context.Context, r *host.Row) error {
				if name == "x" {
					r.Provide("x", 1)
				}
				r.OnStop(func(ctx context.Context) error {
					<-ctx.Done()
					return ctx.Err()
				})
				return nil
			}}, true
		}})
		apply(t, h, "- {id: a, name: x}\n- {id: b, name: p, inject: [x]}")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		err := h.Stop(ctx)
		if took := time.Since(begin); took != time.Second {
			t.Errorf("took %s", took)
		}
		if err == nil || err.Error() != "row b (p): context canceled\nrow a (x): context canceled" {
			t.Error(err)
		}
		same(t, states(h), "a off\nb off")
	})
}

// TestStopReachesAll ends the ctx of Stop while a row hangs: what it uses, and
// what that uses, is told to stop all the same.
func TestStopReachesAll(t *testing.T) {
	for name, hang := range map[string]func(context.Context, *host.Row, <-chan struct{}){
		"a function of OnStop": func(_ context.Context, r *host.Row, end <-chan struct{}) {
			r.OnStop(func(context.Context) error { <-end; return nil })
		},
		"a task": func(_ context.Context, r *host.Row, end <-chan struct{}) {
			r.Go(func(context.Context) error { <-end; return nil })
		},
		"a start": func(_ context.Context, _ *host.Row, end <-chan struct{}) { <-end },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := make(chan struct{})
				var mu sync.Mutex
				told := map[string]bool{}
				h := host.New(host.Options{Registry: func(name string) (host.Plugin, bool) {
					return host.Plugin{Provides: []string{name}, Start: func(ctx context.Context, r *host.Row) error {
						r.OnStop(func(context.Context) error {
							mu.Lock()
							defer mu.Unlock()
							told[name] = ctx.Err() != nil
							return nil
						})
						r.Provide(name, name)
						if name == "z" {
							hang(ctx, r, end)
						}
						return nil
					}}, true
				}})
				if err := h.Apply(t.Context(), rows(t, "- {id: x, name: x}\n- {id: y, name: y, inject: [x]}\n- {id: z, name: z, inject: [y]}")); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				begin := time.Now()
				err := h.Stop(ctx)
				if took := time.Since(begin); took != time.Second+200*time.Millisecond {
					t.Errorf("took %s", took)
				}
				if err == nil || err.Error() != "row z (z): has not stopped: context deadline exceeded" {
					t.Error(err)
				}
				mu.Lock()
				if !told["x"] || !told["y"] {
					t.Error(told)
				}
				mu.Unlock()
				same(t, states(h), "x off\ny off\nz stopping")
				close(end)
				synctest.Wait()
				same(t, states(h), "x off\ny off\nz off")
			})
		})
	}
}

// TestOnStopIsNeverLost adds things to be done as late as can be.
func TestOnStopIsNeverLost(t *testing.T) {
	for name, add := range map[string]func(r *host.Row, done func(context.Context) error){
		"by a task": func(r *host.Row, done func(context.Context) error) {
			r.Go(func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Second)
				r.OnStop(done)
				return nil
			})
		},
		"by what a task added": func(r *host.Row, done func(context.Context) error) {
			r.Go(func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Second)
				r.OnStop(func(context.Context) error { r.OnStop(done); return nil })
				return nil
			})
		},
		"after the end": func(r *host.Row, done func(context.Context) error) {
			go func() {
				time.Sleep(time.Minute)
				r.OnStop(done)
			}()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done := false
				h := host.New(host.Options{Registry: func(string) (host.Plugin, bool) {
					return host.Plugin{Start: func(_ context.Context, r *host.Row) error {
						add(r, func(context.Context) error { done = true; return errors.New("bad stop") })
						return nil
					}}, true
				}})
				apply(t, h, "- {id: a, name: p}")
				_ = h.Stop(t.Context())
				time.Sleep(2 * time.Minute)
				if log := h.Log("a"); !done || len(log) != 1 || log[0].Text != "stop: bad stop" {
					t.Error(done, log)
				}
			})
		})
	}
}

// TestOneTimeForTheEnd stops a row whose Start takes a while to notice: what it
// does then heeds ctx, and is in time.
func TestOneTimeForTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Options{Registry: func(string) (host.Plugin, bool) {
			return host.Plugin{Start: func(ctx context.Context, r *host.Row) error {
				r.OnStop(func(ctx context.Context) error { <-ctx.Done(); return nil })
				<-ctx.Done()
				time.Sleep(3 * time.Second)
				return nil
			}}, true
		}})
		if err := h.Apply(t.Context(), rows(t, "- {id: a, name: p}")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		begin := time.Now()
		if err := h.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != 4500*time.Millisecond {
			t.Errorf("took %s", took)
		}
		same(t, states(h), "a off")
	})
}

// TestLateProvide provides a service while the row stops for the sake of
// another: that is no failure, and the row comes back.
func TestLateProvide(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		apply(t, h, "- {id: x, name: give:x}\n- {id: a, name: need:x may:y}")
		row := w.row("a")
		row.OnStop(func(context.Context) error { row.Provide("y", 1); return nil })
		w.row("x").Fail(errors.New("broken"))
		settle(t, h)
		same(t, states(h), "x failed: broken\na waiting: waits for x (row x has failed)")
		if err := h.Restart(t.Context(), "x"); err != nil {
			t.Error(err)
		}
		same(t, states(h), "x active\na active")
	})
}

// TestLogsHoldNothingUp has rows that log faster than anybody is told.
func TestLogsHoldNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		told := map[string]int{}
		h := host.New(host.Options{
			Event: func(e host.Event) {
				time.Sleep(100 * time.Microsecond)
				mu.Lock()
				defer mu.Unlock()
				if e.State == host.Active && e.Line == "" {
					told[e.Path]++
				}
			},
			Registry: func(string) (host.Plugin, bool) {
				return host.Plugin{Start: func(_ context.Context, r *host.Row) error {
					r.Go(func(ctx context.Context) error {
						for ctx.Err() == nil {
							time.Sleep(50 * time.Microsecond)
							r.Logf("noise")
						}
						return nil
					})
					return nil
				}}, true
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		tree := "- {id: a, name: p, config: %d}\n- {id: b, name: p}"
		for i := range 3 { // the second puts nothing back
			if err := h.Apply(ctx, rows(t, fmt.Sprintf(tree, i))); err != nil {
				t.Fatal(err)
			}
			if err := h.Settled(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.Restart(ctx, "b"); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		if told["a"] != 3 || told["b"] != 2 {
			t.Error("settled before all was told:", told)
		}
		mu.Unlock()
		if err := h.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		var row *host.Row
		var mu sync.Mutex
		note := func(s string) func(context.Context) error {
			return func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, s)
				return nil
			}
		}
		h := host.New(host.Options{
			Dir: func(compose.Row) string { return "/layer" },
			Registry: func(name string) (host.Plugin, bool) {
				return host.Plugin{Start: func(ctx context.Context, r *host.Row) error {
					row = r
					r.OnStop(note("first"))
					r.OnStop(func(context.Context) error {
						if ctx.Err() == nil {
							t.Error("ctx has not ended")
						}
						r.OnStop(note("added while stopping"))
						return nil
					})
					r.OnStop(note("last"))
					r.Go(func(ctx context.Context) error {
						<-ctx.Done()
						time.Sleep(time.Second)
						_ = note("task")(ctx)
						return errors.New("of no interest")
					})
					return nil
				}}, true
			},
		})
		apply(t, h, "- {id: a, name: p, config: {port: 80, list: [1, x]}}")
		if row.Path() != "a" || row.ID() != "a" || row.Name() != "p" || row.Dir() != "/layer" {
			t.Errorf("%s %s %s %s", row.Path(), row.ID(), row.Name(), row.Dir())
		}
		for _, c := range []struct {
			into any
			want string
		}{
			{&struct {
				Port int
				List []any
			}{}, ""},
			{&struct{ Port int }{}, `config: the key "list" is not known`},
			{&struct {
				Port string `json:"port"`
				List []any
			}{}, "config.port: a number cannot stand here"},
		} {
			if err := row.Decode(c.into); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
				t.Errorf("%T: %v", c.into, err)
			}
		}
		if err := h.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if got := strings.Join(order, ", "); got != "last, added while stopping, first, task" {
			t.Error(got)
		}
		row.Go(func(context.Context) error { t.Error("runs after the end"); return nil })
		row.Fail(errors.New("after the end"))
		row.Provide("x", 1)
		row.Logf("after the end")
		same(t, states(h), "a off")
	})
}

// TestServiceMistakes asks for services as a plugin with a mistake does.
func TestServiceMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		ask  func(r *host.Row)
		want string
	}{
		"not injected":                {func(r *host.Row) { host.Service[string](r, "x") }, `a failed: panic: the plugin asks for service "x" without injecting it`},
		"of another type":             {func(r *host.Row) { host.Service[int](r, "y") }, `a failed: panic: service "y" is of type string, and the plugin asks for int`},
		"an optional of another type": {func(r *host.Row) { host.Service[int](r, "z") }, `a failed: panic: service "z" is of type string, and the plugin asks for int`},
		"a slot of another type":      {func(r *host.Row) { host.Service[error](r, "slot") }, `a failed: panic: service "slot" is of type string, and the plugin asks for error`},
		"no mistake": {func(r *host.Row) {
			_, required := host.Service[string](r, "y")
			_, optional := host.Service[fmt.Stringer](r, "none")
			_, slot := host.Service[string](r, "slot")
			if !required || optional || !slot {
				panic("of another kind")
			}
		}, "a active"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				o := w.options()
				o.Registry = func(name string) (host.Plugin, bool) {
					if name != "ask" {
						return w.plugin(name)
					}
					return host.Plugin{
						Inject: []host.Need{{Service: "y"}, {Service: "z", Optional: true}, {Service: "none", Optional: true}},
						Start:  func(_ context.Context, r *host.Row) error { c.ask(r); return nil },
					}, true
				}
				h := host.New(o)
				apply(t, h, "- {id: x, name: give:x give:y give:z}\n- {id: a, name: ask}")
				same(t, states(h), "x active\n"+c.want)
				if err := h.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(r *host.Row)
		want string
	}{
		"an error of a task":     {func(r *host.Row) { r.Go(func(context.Context) error { return errors.New("broken") }) }, "a failed: broken"},
		"no error of a task":     {func(r *host.Row) { r.Go(func(context.Context) error { return nil }) }, "a active"},
		"a panic of a task":      {func(r *host.Row) { r.Go(func(context.Context) error { panic("oh") }) }, "a failed: panic: oh"},
		"two failures":           {func(r *host.Row) { r.Fail(errors.New("one")); r.Fail(errors.New("two")) }, "a failed: one"},
		"nothing as a failure":   {func(r *host.Row) { r.Fail(nil) }, "a failed: the row failed and does not say why"},
		"a service that is late": {func(r *host.Row) { r.Provide("x", 1) }, `a failed: service "x" is provided after the start`},
		"a service not listed":   {func(r *host.Row) { r.Provide("y", 1) }, `a failed: the plugin provides service "y" without listing it`},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world, h *host.Host) {
				apply(t, h, "- {id: a, name: may:x}")
				c.do(w.row("a"))
				synctest.Wait()
				settle(t, h)
				same(t, states(h), c.want)
				// It stays so until it is started again.
				apply(t, h, "- {id: a, name: may:x}")
				same(t, states(h), "a active")
			})
		})
	}
}

func TestPanicIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		apply(t, h, "- {id: a, name: panic}")
		log := h.Log("a")
		if len(log) < 3 || log[0].Text != "panic: out of cheese" || !strings.HasPrefix(log[1].Text, "goroutine") {
			t.Error(log)
		}
		if log := h.Log("b"); log != nil {
			t.Error(log)
		}
	})
}

func TestBadStop(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		apply(t, h, "- {id: a, name: badstop}\n- {id: b, name: badstop}")
		if err := h.Restart(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		err := h.Stop(t.Context())
		if err == nil || err.Error() != "row a (badstop): bad stop\nrow b (badstop): bad stop" &&
			err.Error() != "row b (badstop): bad stop\nrow a (badstop): bad stop" {
			t.Error(err)
		}
	})
}

func TestLogIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		apply(t, h, "- {id: a, name: p}")
		row := w.row("a")
		for i := range 1000 {
			row.Logf("line %d\n\nand %s", i, strings.Repeat("ä", 10_000))
		}
		log := h.Log("a")
		if len(log) != 200 || log[198].Text != "line 999" || log[0].Text != "line 900" || len(log[199].Text) > 5000 {
			t.Error(len(log), log[0].Text, log[198].Text)
		}
	})
}

func TestRestart(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, h *host.Host) {
		apply(t, h, `
- {id: a, name: need:x}
- {id: x, name: give:x}
- {id: b, name: p}
- {id: off, name: p, disabled: true}
- {id: waits, name: need:y}
- {id: bad, name: fail}`)
		for path, want := range map[string]string{
			"x": "", "b": "",
			"off":   "row off (p): is off",
			"waits": "row waits (need:y): waits for y (no row of the tree provides it)",
			"bad":   "row bad (fail): does not start",
			"none":  "there is no row none",
		} {
			if err := h.Restart(t.Context(), path); (err == nil) != (want == "") || err != nil && err.Error() != want {
				t.Errorf("%s: %v", path, err)
			}
		}
		if w.startsOf("x") != 2 || w.startsOf("a") != 2 || w.startsOf("b") != 2 || w.startsOf("bad") != 2 {
			t.Error(w.starts)
		}
	})
}
