package tools

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
)

func named(names ...string) (list []Tool) {
	for _, name := range names {
		list = append(list, Tool{Name: name, Call: func(context.Context, json.RawMessage) (*Result, error) {
			return &Result{Structured: json.RawMessage(`"` + name + `"`)}, nil
		}})
	}
	return list
}

func (g *Registry) owners() (list []string) {
	for _, t := range g.List() {
		list = append(list, t.Owner+":"+t.Name)
	}
	return list
}

func TestPublish(t *testing.T) {
	g := New()
	told := 0
	cancel := g.Subscribe(func() { told++ })
	steps := []struct {
		owner string
		names []string
		taken string // the owner of a name that is not free
		after []string
	}{
		{"a", []string{"x", "y"}, "", []string{"a:x", "a:y"}},
		{"b", []string{"z", "y"}, "a", []string{"a:x", "a:y"}},
		{"b", []string{"z"}, "", []string{"a:x", "a:y", "b:z"}},
		{"a", []string{"y", "w"}, "", []string{"a:w", "a:y", "b:z"}},
		{"a", []string{"v", "v"}, "a itself", []string{"a:w", "a:y", "b:z"}},
		{"a", nil, "", []string{"b:z"}},
		{"b", []string{"x"}, "", []string{"b:x"}},
	}
	good := 0
	for i, s := range steps {
		err := g.Publish(s.owner, named(s.names...))
		taken, refused := errors.AsType[*TakenError](err)
		if refused != (s.taken != "") || refused && taken.Owner != s.taken {
			t.Errorf("step %d: %v", i, err)
		}
		if !refused {
			good++
		}
		if got := g.owners(); !slices.Equal(got, s.after) || told != good {
			t.Errorf("step %d: tools are %q, told %d times", i, got, told)
		}
	}
	if result, err := g.Call(t.Context(), "x", nil); err != nil || string(result.Structured) != `"x"` {
		t.Errorf("the call gave %v, %v", result, err)
	}
	if _, err := g.Call(t.Context(), "y", nil); err == nil {
		t.Error("a tool that is gone was called")
	}
	cancel()
	_ = g.Publish("b", nil)
	if told != good {
		t.Error("told after the end")
	}
}

type server string

func (s server) Status() ServerStatus {
	return ServerStatus{Name: string(s), Row: "row-of-" + string(s)}
}
func (s server) Call(context.Context, string, json.RawMessage) (*Result, error) {
	return nil, nil
}

func TestServers(t *testing.T) {
	g := New()
	removeB, err := g.AddServer("b", server("b"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.AddServer("a", server("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := g.AddServer("b", server("c")); err == nil {
		t.Error("a name was given twice")
	}
	if list := g.Servers(); len(list) != 2 || list[0].Status().Name != "a" {
		t.Errorf("servers are %v", list)
	}
	removeB()
	if _, ok := g.Server("b"); ok {
		t.Error("a server that is gone is there")
	}
	if _, err := g.AddServer("b", server("b")); err != nil {
		t.Errorf("its name is not free: %v", err)
	}
}
