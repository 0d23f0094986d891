package slot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"dsh/internal/boot/host"
	"dsh/internal/compose"
)

// TestKeep restarts rows that keep how often they made something.
func TestKeep(t *testing.T) {
	for name, c := range map[string]struct {
		slots map[string]any
		want  []int // what row a has at its first and second start, and row b
	}{
		"kept":         {map[string]any{Keeping: NewKept()}, []int{1, 1, 2}},
		"nothing kept": {nil, []int{1, 3, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			made := 0
			had := map[string][]int{}
			plugin := host.Plugin{Inject: []host.Need{{Service: Keeping, Optional: true}}, Start: func(_ context.Context, r *host.Row) error {
				n := Keep(r, "count", func() *int { made++; n := made; return &n })
				if other := Keep(r, "other", func() string { return "text" }); other != "text" {
					t.Errorf("another name has %q", other)
				}
				had[r.ID()] = append(had[r.ID()], *n)
				return nil
			}}
			h := host.New(host.Options{Registry: func(string) (host.Plugin, bool) { return plugin, true }, Slots: c.slots})
			defer func() {
				if err := h.Stop(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			var rows []compose.Row
			for _, id := range []string{"a", "b"} {
				patches, err := compose.ParsePatches(compose.Source{File: "test"}, fmt.Appendf(nil, "- insert:\n    - {id: %s, name: x}\n", id))
				if err != nil {
					t.Fatal(err)
				}
				rows = append(rows, compose.Apply([]compose.Layer{{Label: "test", Patches: patches}}, func(string) *compose.PathRule { return nil }).Rows...)
				if err := errors.Join(h.Apply(t.Context(), rows), h.Settled(t.Context())); err != nil {
					t.Fatal(err)
				}
			}
			if err := h.Restart(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			if got := []int{had["a"][0], had["a"][1], had["b"][0]}; !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
