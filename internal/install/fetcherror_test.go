package install

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"dsh/internal/fault"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
)

func TestWrapFetch(t *testing.T) {
	lock := &Lock{
		Wanted: map[string]string{"a": "^1", "b": "^1", "z": "*"},
		Nodes: map[string]Located{
			"node_modules/a": {Package: &Package{Name: "a", Version: "1.0.0", Dependencies: map[string]string{"m": "*"}}},
			"node_modules/m": {Package: &Package{Name: "m", Version: "1.0.0", Dependencies: map[string]string{"c": "*"}}},
			"node_modules/b": {Package: &Package{Name: "b", Version: "1.1.0", Dependencies: map[string]string{"c": "^3"}}},
			"node_modules/c": {Package: &Package{Name: "c", Version: "3.0.0"}},
			"node_modules/z": {Package: &Package{Name: "z", Version: "2.0.0"}},
		},
	}
	down := &registry.NetworkError{Doing: "download c-3.0.0.tgz", Host: "registry.example", Cause: "it answered HTTP 500"}
	wrong := &store.MismatchError{}
	for _, tt := range []struct {
		at   string
		err  error
		host string
		want string
	}{
		{"node_modules/c", down, "registry.example",
			"c@3.0.0: download c-3.0.0.tgz from registry.example: it answered HTTP 500\n\tasked for by: the profile → b@1.1.0 → c@3.0.0"},
		{"node_modules/z", wrong, "registry.example", "z@2.0.0: " + wrong.Error() + "\n\tfrom:   registry.example"},
		{"node_modules/c", wrong, "", "c@3.0.0: " + wrong.Error() + "\n\tasked for by: the profile → b@1.1.0 → c@3.0.0"},
	} {
		err := wrapFetch(lock, tt.at, tt.err, tt.host)
		if err.Error() != tt.want {
			t.Errorf("it says\n%v\nand not\n%s", err, tt.want)
		}
		if !errors.Is(err, tt.err) || fault.ClassOf(err) != fault.ClassOf(tt.err) {
			t.Errorf("%v has another class than what it wraps", err)
		}
	}
	stopped := fmt.Errorf("read: %w", context.Canceled)
	if got := wrapFetch(lock, "node_modules/z", stopped, "h"); got != stopped {
		t.Errorf("what was stopped is told as %v", got)
	}
	if got := wrapFetch(lock, "node_modules/z", nil, "h"); got != nil {
		t.Errorf("no error becomes %v", got)
	}
}
