// Package webruntime tells the user where the page is once everything runs,
// and opens it in the browser where that makes sense.
//
// It serves nothing.
package webruntime

import (
	"context"
	"runtime"
	"sync"

	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins/webserver"
	"dsh/internal/boot/slot"
)

// Name is the plugin's.
const Name = "@deepseek-ai/dsh-web-app"

// Config is the configuration of the row.
type Config struct {
	OpenBrowser *bool `json:"openBrowser"` // nil is true
	PrintURL    *bool `json:"printUrl"`    // nil is true
	// SurfaceContext is for agents, which this host has none of.
	SurfaceContext bool     `json:"surfaceContext"`
	TrustedHosts   []string `json:"trustedHosts"`
}

func isTrue(b *bool) bool { return b == nil || *b }

// New is the plugin. open starts a browser with an address; OpenBrowser is one.
func New(open func(address, dir string) error) host.Plugin {
	// What was told is not told again when the row restarts, and a page that was
	// opened finds the server by itself.
	var mu sync.Mutex
	var printed string
	var opened bool
	return host.Plugin{
		Inject: []host.Need{{Service: webserver.Service}, {Service: slot.Ready}, {Service: slot.Environment},
			{Service: slot.Say, Optional: true}, {Service: slot.Profile, Optional: true}},
		Start: func(_ context.Context, r *host.Row) error {
			var config Config
			if err := r.Decode(&config); err != nil {
				return err
			}
			server, _ := host.Service[webserver.Server](r, webserver.Service)
			ready, _ := host.Service[slot.Readiness](r, slot.Ready)
			say, ok := host.Service[slot.SayFunc](r, slot.Say)
			if !ok {
				say = func(line string) {}
			}
			environment, _ := host.Service[slot.LaunchEnvironment](r, slot.Environment)
			server.TrustHosts(config.TrustedHosts)
			r.OnStop(func(context.Context) error { server.TrustHosts(nil); return nil })
			r.Go(func(ctx context.Context) error {
				select {
				case <-ctx.Done():
					return nil
				case <-ready.Done():
				}
				mu.Lock()
				defer mu.Unlock()
				if isTrue(config.PrintURL) && printed != server.OpenURL() {
					printed = server.OpenURL()
					say(printed)
				}
				if !isTrue(config.OpenBrowser) || opened {
					return nil
				}
				if why := noBrowser(runtime.GOOS, environment.Getenv); why != "" {
					r.Logf("no browser is opened: %s", why)
					return nil
				}
				opened = true
				dir := ""
				if p, ok := host.Service[*slot.ProfileContext](r, slot.Profile); ok && p != nil {
					dir = p.Cwd
				}
				result := make(chan error, 1)
				// The words of a command line can be read by every user of the machine.
				go func() { result <- open(server.OnceURL(), dir) }()
				select {
				case <-ctx.Done(): // the browser may come all the same
				case err := <-result:
					if err != nil {
						r.Logf("no browser is opened: %v", err)
					}
				}
				return nil
			})
			return nil
		},
	}
}

// noBrowser is why no browser can be opened for who started dsh, "" if it can.
func noBrowser(system string, getenv func(string) string) string {
	for _, name := range []string{"SSH_CONNECTION", "SSH_TTY"} {
		if getenv(name) != "" {
			return "dsh was started over SSH (" + name + " is set)"
		}
	}
	if system != "windows" && system != "darwin" && getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "" {
		return "there is no display (DISPLAY and WAYLAND_DISPLAY are not set)"
	}
	return ""
}
