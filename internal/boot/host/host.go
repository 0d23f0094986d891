// Package host is the container of rows: it starts each row of a tree once the
// services that it needs are there, stops it when one of them goes, and tells
// what every row waits for.
//
// It is not a plugin and knows none: what a row does is its [Plugin], found by
// name. It touches no disk, network or terminal.
package host

import (
	"context"
	"time"

	"dsh/internal/compose"
)

// Plugin is what the rows of one name start.
type Plugin struct {
	// Inject are the services that a row needs, besides those of its own
	// `inject`.
	Inject []Need
	// Provides are the services that a row may provide.
	Provides []string
	// Start sets the row up and returns. What the row provides is seen by others
	// when Start returned nil. ctx ends when the row is to stop.
	Start func(ctx context.Context, r *Row) error
}

// Need is a service that a row needs before it starts. The row is stopped when
// the service goes, and comes back with it. An optional need does not hold a
// row back; the row restarts when the service comes or goes.
type Need struct {
	Service  string
	Optional bool
}

// Registry finds the plugin of a name.
type Registry func(name string) (Plugin, bool)

// Expressible is a service whose fields expressions can read as
// ctx.<service>.<field>. What it returns must marshal as JSON. Services that
// are not Expressible are seen by expressions only as being there.
type Expressible interface {
	Expression() any
}

// Evaluator gives expressions their values.
type Evaluator interface {
	Evaluate(ctx context.Context, text string, scope Scope) (compose.Value, error)
}

// Undefined is the value of an expression that has none. A key of a mapping
// with it is left out of a config.
type Undefined struct{}

// Truthy says whether the value of an expression counts as true.
func Truthy(v compose.Value) bool { return v != Undefined{} && compose.Truthy(v) }

// Scope is what an expression sees of the row that it belongs to.
type Scope struct {
	// Services are the values of ctx.<service> and ctx.get('service'), each of
	// which marshals as JSON. An optional one that is not there is Undefined.
	Services map[string]any
	// Others are the services that rows of the tree could provide and that the
	// row does not inject, sorted.
	Others []string
}

// Options are how a host runs rows. All but Registry may be left out.
type Options struct {
	Registry Registry
	// Slots are services that are there before any row. Rows cannot provide them.
	Slots map[string]any
	// Evaluator evaluates expressions. Without it a row that has one fails.
	Evaluator Evaluator
	// Check refuses a config that the plugin's schema does not allow. It gets the
	// config with its expressions evaluated.
	Check func(row RowSpec, config compose.Value) error
	// Dir is the directory of the layer that brought a row.
	Dir func(row compose.Row) string
	// Include reads the rows of a cordis:include row. Without it such rows fail.
	Include func(row RowSpec) ([]compose.Row, error)
	// Event is told what happens, one thing at a time: of each row in order, and
	// what waited for something after it; see also [SortEvents]. It must not wait
	// for the host.
	Event func(Event)
	// StartTimeout and StopTimeout bound one row: 30 s and 5 s when zero.
	StartTimeout, StopTimeout time.Duration
}

// RowSpec is a row as it was composed.
type RowSpec struct {
	Path   string // unique in the tree: "webserver", "group/inner"; "#3" is the third row, without an id
	ID     string // "" when it has none
	Name   string // of its plugin
	Origin string // label of the layer that brought it
	Dir    string // directory of that layer
	Entry  *compose.Map
}

// State is what a row does.
type State uint8

// The states of rows.
const (
	Off      State = iota // disabled
	Waiting               // for services
	Starting              // Start has not returned
	Active                //
	Stopping              // what it started has not ended
	Failed                // until it is started again
)

// String is the state in one word.
func (s State) String() string {
	return [...]string{"off", "waiting", "starting", "active", "stopping", "failed"}[s]
}

// MarshalText is the state in one word.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Status is a row as it is now.
type Status struct {
	RowSpec
	State   State
	Missing []string // services that a waiting row waits for
	// Why says of a waiting row "waits for …": what, and why that does not come.
	Why      string
	Err      error // of a failed row
	Since    time.Time
	Provides []string // services that the row provides now
}
