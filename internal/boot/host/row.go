package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"dsh/internal/compose"
)

// Row is one running instance of a row. Its methods may be called by any
// goroutine, from Start until the row has stopped.
type Row struct {
	host     *Host
	spec     RowSpec
	config   compose.Value
	services map[string]any
	provided map[string]any
	onStop   []func(context.Context) error
	ctx      context.Context
	cancel   context.CancelFunc
}

// Path is unique in the tree: "webserver", "group/inner", and "#3" for the
// third row when it has no id.
func (r *Row) Path() string { return r.spec.Path }

// ID is the id of the row, "" if it has none.
func (r *Row) ID() string { return r.spec.ID }

// Name is the name of the row's plugin.
func (r *Row) Name() string { return r.spec.Name }

// Dir is the directory of the layer that brought the row.
func (r *Row) Dir() string { return r.spec.Dir }

// Config is the config of the row with its expressions evaluated, nil if it has
// none.
func (r *Row) Config() compose.Value { return r.config }

// Decode reads the config into v as JSON. A key that v does not have is an
// error, which names it. A row without a config has an empty one.
func (r *Row) Decode(v any) error {
	config := r.config
	if config == nil {
		config = &compose.Map{}
	}
	text, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("read the config: %w", err)
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("read the config: %w", err)
	}
	return nil
}

// Provide gives others a service, which they see once Start returned nil. The
// plugin must list it in Provides. It panics where that is not so, and when
// Start is over.
func (r *Row) Provide(service string, value any) {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	r.provided[service] = value
}

// OnStop adds what is to be done when the row stops, in reverse order. ctx
// bounds it.
func (r *Row) OnStop(f func(ctx context.Context) error) { r.onStop = append(r.onStop, f) }

// Go runs f until the row stops, which waits for it. An error of f fails the
// row, unless the row is stopping.
func (r *Row) Go(f func(ctx context.Context) error) {
	go func() {
		if err := f(r.ctx); err != nil && r.ctx.Err() == nil {
			r.Fail(err)
		}
	}()
}

// Fail stops the row, and who needs it. It stays failed until it is started
// again.
func (r *Row) Fail(err error) {}

// Logf adds a line to the log of the row.
func (r *Row) Logf(format string, args ...any) {}

// Intercept is the `intercept` of the row and its groups for a service,
// outermost first.
func (r *Row) Intercept(service string) []compose.Value { return nil }

// Service is a service that the row injects, or a slot. It is false where an
// optional one is not there.
func Service[T any](r *Row, name string) (T, bool) {
	v, ok := r.services[name].(T)
	return v, ok
}

var errNoPlugin = errors.New("there is no plugin of this name")
