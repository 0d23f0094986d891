package slot

import (
	"slices"
	"testing"
)

// Readers of the command line do not see what others do with theirs.
func TestArgsAreCopies(t *testing.T) {
	given := []string{"a", "b"}
	args := NewArgs(given)
	given[0] = "changed"
	first := args.Get()
	first[1] = "changed"
	if got := args.Get(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q", got)
	}
	if got := (Args{}).Get(); got == nil || len(got) != 0 {
		t.Errorf("without arguments: %#v", got)
	}
}

func TestListeners(t *testing.T) {
	var l Listeners[int]
	var told []int
	first := l.Add(func(v int) { told = append(told, v) })
	var second func()
	second = l.Add(func(v int) {
		told = append(told, 10*v)
		second() // one may go while it is told
	})
	l.Tell(1)
	l.Tell(2)
	first()
	first()
	l.Tell(3)
	if !slices.Equal(told, []int{1, 10, 2}) {
		t.Errorf("got %v", told)
	}
}
