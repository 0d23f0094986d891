package profileapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"dsh/internal/action"
	"dsh/internal/check"
	"dsh/internal/fault"
	"dsh/internal/install"
)

// The states of an operation.
const (
	running   = "running"
	done      = "done"
	failed    = "failed"
	cancelled = "cancelled"
)

// Operation is a change that takes a while, as clients see it.
type Operation struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`    // add, update, remove, install, approve or rollback
	Title   string `json:"title"`   // in words
	Command string `json:"command"` // that does the same
	State   string `json:"state"`   // running, done, failed or cancelled
	// Stage is starting, waiting, resolving, fetching, linking or building; Detail
	// is the package, or whom it waits for.
	Stage    string          `json:"stage"`
	Detail   string          `json:"detail"`
	Done     int             `json:"done"`  // packages
	Total    int             `json:"total"` // packages, as far as it is known
	Bytes    int64           `json:"bytes"` // that came in
	Started  time.Time       `json:"started"`
	Ended    *time.Time      `json:"ended"`
	Error    *problem        `json:"error"`
	Findings []check.Finding `json:"findings"` // for which the change was refused
	Summary  []string        `json:"summary"`
	Warnings []string        `json:"warnings"`
	Result   any             `json:"result"` // of the function of package action
}

// maxOperations is how many operations are remembered.
const maxOperations = 20

// operations are the operations on one profile, one at a time. They outlive the
// row, which a change of the profile may make anew: its page has to see how the
// change ended.
type operations struct {
	mu   sync.Mutex
	all  []*operation // the newest last
	next int          // number of the next one
	hub  *hub         // of the row that runs now
	logf func(format string, args ...any)
}

// follow makes hub the one that is told, and logf the log.
func (o *operations) follow(h *hub, logf func(format string, args ...any)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hub, o.logf = h, logf
}

func (o *operations) notify(t topic) {
	o.mu.Lock()
	h := o.hub
	o.mu.Unlock()
	if h != nil {
		h.notify(t)
	}
}

// operation is one operation under way.
type operation struct {
	cancel context.CancelFunc
	ended  chan struct{}
	notify func(topic)

	mu      sync.Mutex
	view    Operation
	asked   string // the package that a registry was asked for last
	linking int
	builds  string
	waits   string
}

// busyError is that an operation is under way.
func busyError(id string) error {
	return &failure{
		code: http.StatusConflict, class: busyClass, message: "another change of this profile is under way",
		hint: "wait for its end, or cancel it", more: map[string]string{"operation": id},
	}
}

// outcome is what an operation came to.
type outcome struct {
	result            any
	summary, warnings []string
}

// start runs work in the background, unless something runs already.
func (o *operations) start(view Operation, work func(context.Context, *operation) (outcome, error)) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.all); n > 0 && o.all[n-1].runs() {
		return "", busyError(o.all[n-1].view.ID)
	}
	o.next++
	view.ID, view.State, view.Stage, view.Started = "op-"+strconv.Itoa(o.next), running, "starting", time.Now().UTC()
	view.Findings, view.Summary, view.Warnings = []check.Finding{}, []string{}, []string{}
	ctx, cancel := context.WithCancel(context.Background())
	op := &operation{cancel: cancel, ended: make(chan struct{}), notify: o.notify, view: view}
	if o.all = append(o.all, op); len(o.all) > maxOperations {
		o.all = o.all[1:]
	}
	go func() {
		defer close(op.ended)
		defer cancel()
		out, err := o.safely(ctx, op, work)
		op.end(ctx, out, err)
		o.notify(operationChanged | treeChanged)
	}()
	return view.ID, nil
}

// safely makes an error of a panic: what the page asks for must not end the
// profile.
func (o *operations) safely(ctx context.Context, op *operation, work func(context.Context, *operation) (outcome, error)) (out outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.WithHint(fmt.Errorf("dsh failed: %v", p), "the log of the row of the page's interface tells more")
			o.mu.Lock()
			logf := o.logf
			o.mu.Unlock()
			logf("%s failed: %v\n%s", op.view.Title, p, debug.Stack())
		}
	}()
	return work(ctx, op)
}

func (op *operation) runs() bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.view.State == running
}

func (op *operation) end(ctx context.Context, out outcome, err error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	now := time.Now().UTC()
	v := &op.view
	v.Stage, v.Detail = op.stage()
	v.Ended, v.State = &now, done
	v.Summary, v.Warnings = append(v.Summary, out.summary...), tell(out.warnings).Warnings
	if err == nil {
		v.Result = out.result
		return
	}
	p := problemOf(err)
	v.State, v.Error = failed, &p
	if f, ok := errors.AsType[*failure](err); ok {
		p.Class, p.Hint = f.class, f.hint
	}
	if refusal, ok := errors.AsType[*action.RefusedError](err); ok {
		v.Findings = refusal.Findings
	}
	if ctx.Err() != nil && fault.ClassOf(err) == fault.Interrupted {
		v.State = cancelled
		if errors.Is(err, context.Canceled) {
			p.Message = "cancelled; nothing was changed"
		}
	}
}

// shown is the operation as it is now.
func (op *operation) shown() Operation {
	op.mu.Lock()
	defer op.mu.Unlock()
	v := op.view
	if v.State == running {
		v.Stage, v.Detail = op.stage()
	}
	return v
}

// stage is what is done now, as the progress line of the commands has it.
func (op *operation) stage() (stage, detail string) {
	v := &op.view
	switch {
	case op.builds != "":
		return "building", op.builds
	case op.linking > 0 && v.Done >= v.Total:
		return "linking", ""
	case v.Total > 0 || v.Bytes > 0:
		return "fetching", ""
	case op.asked != "":
		return "resolving", op.asked
	case op.waits != "":
		return "waiting", op.waits
	default:
		return "starting", ""
	}
}

// saw notes progress.
func (op *operation) saw(note func()) {
	op.mu.Lock()
	note()
	op.mu.Unlock()
	op.notify(operationChanged)
}

// events is what an install tells of itself, from many goroutines.
func (op *operation) events() install.Events {
	return install.Events{
		Resolving: func(name string) { op.saw(func() { op.asked, op.waits = name, "" }) },
		Fetching:  func(n, all int) { op.saw(func() { op.view.Done, op.view.Total = n, all }) },
		Received:  func(n int64) { op.saw(func() { op.view.Bytes += n }) },
		Linking:   func(n int) { op.saw(func() { op.linking = n }) },
		Building:  func(pkg string) { op.saw(func() { op.builds = pkg }) },
		Waiting:   op.waiting,
	}
}

func (op *operation) waiting(holder string) { op.saw(func() { op.waits = holder }) }

// last is the operation that runs, or else the last one; nil where there was
// none.
func (o *operations) last() *Operation {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) == 0 {
		return nil
	}
	v := o.all[len(o.all)-1].shown()
	return &v
}

func (o *operations) find(id string) (*operation, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, op := range slices.Backward(o.all) {
		if op.view.ID == id {
			return op, nil
		}
	}
	return nil, notFound("there is no operation %q any more", id)
}

// halt ends what runs and waits for it, as long as ctx lets it. A transaction
// that is cut off later is taken back by the next command.
func (o *operations) halt(ctx context.Context) error {
	o.mu.Lock()
	all := slices.Clone(o.all)
	o.mu.Unlock()
	for _, op := range all {
		op.cancel()
		select {
		case <-op.ended:
		case <-ctx.Done():
			return fmt.Errorf("end the change %q: %w", op.view.Title, ctx.Err())
		}
	}
	return nil
}
