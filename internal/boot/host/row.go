package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"dsh/internal/compose"
)

// Row is one running instance of a row. Its methods may be called by any
// goroutine, from Start until the row has stopped.
type Row struct {
	host      *Host
	entry     *entry
	spec      RowSpec
	realms    realms
	bound     map[key]*Row // who provides what it needs; nil for an optional need without a provider
	providers []*Row       // each of them once
	config    compose.Value
	intercept []intercept // with expressions evaluated
	ctx       context.Context
	cancel    context.CancelFunc
	released  chan struct{} // closed when the row may end
	deadline  time.Time     // of what it does when it stops; set before released is closed
	timer     *time.Timer   // of the time that Start, or the end, may take
	tasks     sync.WaitGroup

	// The mutex of the host guards all below.

	plan       *plan // what it runs for
	provided   map[key]any
	started    bool // Start has returned
	let        bool // released is closed
	ending     bool // no task begins any more
	ended      bool // what it does when it stops has been done
	over       bool // nothing of it runs any more
	left       bool // it did not stop in time
	failure    error
	onStop     []func(context.Context) error
	users      int // rows that run with what it provides
	usersClock int // the last end of one
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

// Written is the config of the row as the layers have it, with its expressions
// as they are written, nil if it has none.
func (r *Row) Written() compose.Value {
	config, _ := r.spec.Entry.Get("config")
	return config
}

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
		return decodeError(err)
	}
	return nil
}

// decodeError says in words of a config what encoding/json found.
func decodeError(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		where := "config"
		if wrong.Field != "" {
			where += "." + wrong.Field
		}
		return fmt.Errorf("%s: a %s cannot stand here", where, wrong.Value)
	}
	if key, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("config: the key %s is not known", key)
	}
	return fmt.Errorf("config: %w", err)
}

// Provide gives others a service, which they see once Start returned nil. The
// row fails when its plugin does not list the service in Provides, when another
// row provides it already, and when Start has returned.
func (r *Row) Provide(service string, value any) {
	if err := r.provide(service, value); err != nil {
		r.host.fail(r, err)
	}
}

func (r *Row) provide(service string, value any) error {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	k := r.realms.key(service)
	_, twice := r.provided[k]
	switch {
	case !slices.Contains(r.plan.provides, k):
		return fmt.Errorf("the plugin provides service %q without listing it", service)
	case r.started:
		return fmt.Errorf("service %q is provided after the start", service)
	case twice:
		return fmt.Errorf("service %q is provided twice", service)
	case value == nil:
		return fmt.Errorf("service %q is provided as nothing", service)
	case r.host.slots.provided[k] != nil:
		return fmt.Errorf("service %q is dsh's own, which no row can provide", service)
	}
	r.provided[k] = value
	return nil
}

// OnStop adds what is to be done when the row stops, in reverse order: after
// those have stopped that use what it provides, and the row's ctx has ended. ctx
// bounds it. What tasks add while they end is done once they have ended, and
// what is added after that is done at once, so that nothing stays open.
func (r *Row) OnStop(f func(ctx context.Context) error) {
	r.host.mu.Lock()
	if !r.ended {
		r.onStop = append(r.onStop, f)
		r.host.mu.Unlock()
		return
	}
	r.host.mu.Unlock()
	if err := r.guard(func() error { return f(r.ctx) }); err != nil {
		r.Logf("stop: %v", err)
	}
}

// Go runs f until the row stops, which waits for it. An error of f fails the
// row, unless the row is stopping. Once what is to be done when the row stops
// has been done, but for what its tasks add, Go does nothing.
func (r *Row) Go(f func(ctx context.Context) error) {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	if r.ending {
		return
	}
	r.tasks.Go(func() {
		if err := r.guard(func() error { return f(r.ctx) }); err != nil && r.ctx.Err() == nil {
			r.Fail(err)
		}
	})
}

// Fail stops the row, and who needs it. It stays failed until it is started
// again. It does nothing to a row that stops already.
func (r *Row) Fail(err error) {
	if err == nil {
		err = errors.New("the row failed and does not say why")
	}
	r.host.fail(r, err)
}

// Logf adds a line to the log of the row.
func (r *Row) Logf(format string, args ...any) {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	r.host.line(r.entry, fmt.Sprintf(format, args...))
}

// Intercept is the `intercept` of the row and the groups that it is in for a
// service, outermost first.
func (r *Row) Intercept(service string) []compose.Value {
	var configs []compose.Value
	for _, i := range r.intercept {
		if i.service == service {
			configs = append(configs, i.config)
		}
	}
	return configs
}

// Service is a service that the row injects, or a slot. It is false where an
// optional one is not there, and only then. It panics where the row does not
// inject the service, and where that is no T: both are mistakes in the plugin,
// which then fail the row instead of being a nil somewhere later.
func Service[T any](r *Row, name string) (T, bool) {
	var none T
	value, known := r.service(name)
	if !known {
		panic(fmt.Sprintf("the plugin asks for service %q without injecting it", name))
	}
	if value == nil {
		return none, false
	}
	v, ok := value.(T)
	if !ok {
		panic(fmt.Sprintf("service %q is of type %T, and the plugin asks for %s", name, value, reflect.TypeFor[T]()))
	}
	return v, true
}

// service is the value of a service, nil where an optional one is not there, and
// whether the row may ask for it.
func (r *Row) service(name string) (value any, known bool) {
	k := r.realms.key(name)
	if provider, known := r.bound[k]; known {
		if provider == nil {
			return nil, true
		}
		return provider.provided[k], true
	}
	value, known = r.host.slots.provided[k]
	return value, known
}

// guard turns a panic into an error, and its stack into lines of the log.
func (r *Row) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			r.Logf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// live is the life of a row.
func (r *Row) live(p *plan) {
	err := r.guard(func() error { return r.begin(p) })
	r.host.started(r, err)
	<-r.released
	r.host.ended(r, r.end())
}

// begin evaluates the config and starts the plugin.
func (r *Row) begin(p *plan) (err error) {
	if p.carrier {
		r.config = config(p.Entry)
		r.Provide(groupService(p.Path), true)
	} else {
		if r.config, err = r.evaluated("config", config(p.Entry)); err != nil {
			return err
		}
	}
	for _, i := range p.intercept {
		if i.config, err = r.evaluated("intercept."+i.service, i.config); err != nil {
			return err
		}
		r.intercept = append(r.intercept, i)
	}
	if check := r.host.options.Check; check != nil && !p.carrier {
		if err := check(r.spec, r.config); err != nil {
			return err
		}
	}
	if p.plugin.Start == nil {
		return nil
	}
	return p.plugin.Start(r.ctx, r)
}

// end does what is to be done when the row stops, and waits for what it runs.
func (r *Row) end() error {
	ctx, cancel := context.WithDeadline(r.host.patience, r.deadline)
	defer cancel()
	failures := r.undo(ctx, &r.ending)
	r.tasks.Wait()
	failures = append(failures, r.undo(ctx, &r.ended)...) // what the tasks added
	return errors.Join(failures...)
}

// undo does what is to be done when the row stops, and notes under the mutex
// that nothing was left.
func (r *Row) undo(ctx context.Context, done *bool) (failures []error) {
	for {
		r.host.mu.Lock()
		last := len(r.onStop) - 1
		if last < 0 {
			*done = true
			r.host.mu.Unlock()
			return failures
		}
		f := r.onStop[last]
		r.onStop = r.onStop[:last]
		r.host.mu.Unlock()
		if err := r.guard(func() error { return f(ctx) }); err != nil {
			failures = append(failures, err)
		}
	}
}
