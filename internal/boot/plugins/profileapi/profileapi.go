// Package profileapi is the JSON interface behind the web page: it shows the
// profile that runs, and changes it, by the functions that the commands call.
//
// It has no rules of its own about profiles, and serves no page. Who may ask is
// the web server's business.
package profileapi

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"

	"dsh/internal/action"
	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins/skill"
	"dsh/internal/boot/plugins/tools"
	"dsh/internal/boot/plugins/webserver"
	"dsh/internal/boot/slot"
	"dsh/internal/fault"
	"dsh/internal/profile"
)

// Name is the plugin's.
const Name = "dsh:profile-api"

// Config is the configuration of the row.
type Config struct {
	Prefix   string `json:"prefix"`   // path of the URL
	Writable bool   `json:"writable"` // changes are allowed
}

// Plugin serves the interface until its row stops.
var Plugin = host.Plugin{
	Inject: []host.Need{
		{Service: webserver.Service}, {Service: slot.Host}, {Service: slot.Profile, Optional: true}, {Service: slot.Ready, Optional: true}, {Service: slot.Keeping, Optional: true},
		{Service: slot.Live, Optional: true}, {Service: tools.Service, Optional: true}, {Service: skill.Service, Optional: true},
	},
	Start: start,
}

// prefixes are the paths under which the interface may be: no slash at the end,
// nothing that has another form in a URL.
var prefixes = regexp.MustCompile(`^(/[A-Za-z0-9_-]+)+$`)

func start(ctx context.Context, r *host.Row) error {
	config := Config{Prefix: "/api/profile"}
	if err := r.Decode(&config); err != nil {
		return err
	}
	if !prefixes.MatchString(config.Prefix) {
		return fault.WithHint(fault.Errorf(fault.Composition, "prefix %q cannot be the path of the interface", config.Prefix), "write it as /api/profile")
	}
	server, _ := host.Service[webserver.Server](r, webserver.Service)
	rows, _ := host.Service[slot.Rows](r, slot.Host)
	a := &api{id: r.ID(), writable: config.Writable, rows: rows, end: ctx, hub: newHub(), logf: r.Logf, operations: &operations{}, turns: make(chan struct{}, maxTurns), background: r.Go}
	a.profile, _ = host.Service[*slot.ProfileContext](r, slot.Profile)
	a.live, _ = host.Service[slot.LiveLayers](r, slot.Live)
	a.tools, _ = host.Service[*tools.Registry](r, tools.Service)
	a.skillsOf, _ = host.Service[*skill.Catalogue](r, skill.Service)
	if ready, ok := host.Service[slot.Readiness](r, slot.Ready); ok {
		a.ready = ready.Done()
	}
	if a.profile != nil {
		name, err := profile.ParseName(a.profile.Name)
		if err != nil {
			return err
		}
		a.name = name
		a.operations = slot.Keep(r, "operations", func() *operations { return new(operations) })
	}
	a.operations.follow(a.hub, a.logf)
	r.OnStop(a.operations.halt)
	unfollow := a.follow()
	r.OnStop(func(context.Context) error { unfollow(); return nil })
	remove, err := server.Handle(config.Prefix+"/", http.StripPrefix(config.Prefix, a.handler()))
	if err != nil {
		return err
	}
	r.OnStop(func(context.Context) error { remove(); return nil })
	return nil
}

// api is one running row.
type api struct {
	id         string // of the row, "" if it has none
	writable   bool
	profile    *slot.ProfileContext // nil: dsh runs without one
	name       profile.Name         // of it
	rows       slot.Rows
	live       slot.LiveLayers  // nil: nothing follows the files
	tools      *tools.Registry  // nil: no row has the registry
	skillsOf   *skill.Catalogue // likewise
	ready      <-chan struct{}  // nil: not known
	end        context.Context  // ends with the row
	hub        *hub
	operations *operations
	turns      chan struct{} // taken by endpoints that run
	calls      atomic.Int32  // of tools that run
	logf       func(format string, args ...any)
	// background runs what the row waits for when it stops.
	background func(func(context.Context) error)
}

// follow tells the hub what happens elsewhere, until it is cancelled.
func (a *api) follow() (cancel func()) {
	cancels := []func(){a.rows.Subscribe(a.happened)}
	if a.live != nil {
		cancels = append(cancels, a.live.Subscribe(func(slot.Reload) { a.hub.notify(reloadChanged | treeChanged) }))
	}
	if a.tools != nil {
		cancels = append(cancels, a.tools.Subscribe(func() { a.hub.notify(serversChanged) }))
	}
	if a.skillsOf != nil {
		cancels = append(cancels, a.skillsOf.Subscribe(func() { a.hub.notify(skillsChanged) }))
	}
	return func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
}

func (a *api) happened(e host.Event) {
	if e.Line != "" {
		a.hub.log(logLine{Path: e.Path, Time: e.Time, Text: shorten(fault.Discreet(e.Line))})
		return
	}
	a.hub.notify(rowsChanged | serversChanged)
}

// maxLine is how many bytes of a line of a log are sent.
const maxLine = 4096

func shorten(text string) string {
	if len(text) <= maxLine {
		return text
	}
	return strings.ToValidUTF8(text[:maxLine], "") + "…"
}

// env is where the functions of package action work.
func (a *api) env() action.Env { return a.profile.Env }
