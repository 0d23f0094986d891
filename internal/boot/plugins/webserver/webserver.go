// Package webserver is the HTTP server that other rows put their pages and
// interfaces on: routes, one fallback seat for what no route matches, and taps
// that add to the index page. Whatever is behind it is behind a token.
//
// It has no page and no interface of its own.
package webserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"dsh/internal/boot/host"
	"dsh/internal/boot/slot"
	"dsh/internal/compose"
	"dsh/internal/fault"
)

// Service is the name under which the Server is provided.
const Service = "webserver"

// Server is where rows put their handlers. Its methods may be used at any
// time and from any goroutine.
type Server interface {
	// Handle takes a path: "/x" is that path alone, "/x/" whatever begins so. An
	// exact path goes before the longest prefix. A pattern that is taken is an error. Only who
	// shows the token reaches it, or the key that a page gets with the token.
	Handle(pattern string, h http.Handler) (remove func(), err error)
	// RegisterFallback takes the seat for what no route matches: the files of a page,
	// which the cookie of a browser opens. It has one owner.
	RegisterFallback(h http.Handler) (remove func(), err error)
	// TapIndex adds a function on the HTML text of the index page.
	TapIndex(tap func(html string) string) (remove func())
	// RenderIndex is the text after all taps, in the order in which they were added.
	RenderIndex(html string) string
	// Address is the URL of the server without a path: "http://127.0.0.1:3080".
	Address() string
	// OpenURL is the address of the page with the token. Whoever knows it can do
	// all that the page can.
	OpenURL() string
	// OnceURL is the address of the page with a token that is good for one use in
	// the next minute, for places where others may read it.
	OnceURL() string
	// TrustHosts replaces the names under which the page may be asked for besides
	// the server's own: "name" with any port, or "name:port".
	TrustHosts(hosts []string)
}

// Name is the plugin's.
const Name = "@deepseek-ai/dsh-host-webserver"

// Config is the configuration of the row.
type Config struct {
	Host string `json:"host"` // an address of this machine, or localhost
	Port int    `json:"port"` // 0 lets the system choose
}

// Plugin listens and serves until its row stops.
var Plugin = host.Plugin{Provides: []string{Service}, Inject: []host.Need{{Service: slot.Profile, Optional: true}, {Service: slot.Keeping, Optional: true}}, Start: start}

func start(ctx context.Context, r *host.Row) error {
	var config Config
	if err := r.Decode(&config); err != nil {
		return err
	}
	listener, err := listenAgain(ctx, config, slot.Keep(r, "port", func() *chosen { return new(chosen) }))
	if err != nil {
		if p, ok := host.Service[*slot.ProfileContext](r, slot.Profile); ok && p != nil && taken(err) && r.ID() != "" {
			err = fault.WithHint(err, "%s lets the system choose a free port", fault.ShellWords(anyPort(r, p.Name)...))
		}
		return err
	}
	s := newServer(listener.Addr().(*net.TCPAddr).AddrPort(), slot.Keep(r, "token", newToken), r.Logf)
	r.OnStop(s.stop)
	r.Go(func(context.Context) error {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve %s: %w", s.Address(), err)
		}
		return nil
	})
	r.Provide(Service, s)
	return nil
}

// anyPort is the command that starts a profile with a port that is free. The flag
// would do nothing where a patch has put a number in its place.
func anyPort(r *host.Row, profile string) []string {
	config, _ := r.Written().(*compose.Map)
	var port compose.Value
	if config != nil {
		port, _ = config.Get("port")
	}
	expr, ok := port.(compose.Expr)
	switch {
	case !ok || !strings.Contains(expr.Text, "webStartup.port"):
		return []string{"dsh", "--set", r.ID() + ".port=0", "--profile", profile}
	case profile == "web":
		return []string{"dsh", "web", "--port", "0"}
	default: // its name may be that of a command
		return []string{"dsh", "--profile", profile, "--port", "0"}
	}
}

// chosen is the port that the system chose, 0 before. A row that restarts gets
// the one that it had, so that a page which is open finds its server again; so
// does it keep its token, with which that page is signed in.
type chosen struct{ port int }

func listenAgain(ctx context.Context, config Config, before *chosen) (net.Listener, error) {
	if config.Port != 0 {
		return listen(ctx, config)
	}
	if before.port != 0 {
		if listener, err := listen(ctx, Config{config.Host, before.port}); err == nil {
			return listener, nil
		}
	}
	listener, err := listen(ctx, config)
	if err == nil {
		before.port = listener.Addr().(*net.TCPAddr).Port
	}
	return listener, err
}

// listen opens the port. A wildcard address is refused before it is used: it
// would show the page to every network that this machine is in.
func listen(ctx context.Context, config Config) (net.Listener, error) {
	if config.Port < 0 || config.Port > 65535 {
		return nil, fault.Errorf(fault.Other, "port %d: ports are numbers from 0 to 65535", config.Port)
	}
	ip, err := ParseHost(config.Host)
	if err != nil {
		return nil, err
	}
	at := netip.AddrPortFrom(ip, uint16(config.Port))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.String())
	switch {
	case err == nil:
		return listener, nil
	case taken(err):
		return nil, fault.Errorf(fault.Environment, "listen on %s: another program has this port: %w", at, cause(err))
	default:
		return nil, fault.Errorf(fault.Environment, "listen on %s: %w", at, cause(err))
	}
}

// ParseHost is the address that a host as people write it stands for: an IP
// address, or localhost. The latter is 127.0.0.1: were it both loopback
// addresses, another user could have the port of the one that is not ours, and
// get the token of who asks for the name.
func ParseHost(name string) (netip.Addr, error) {
	if strings.EqualFold(name, "localhost") {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"))
	if isWildcard := name == "*" || err == nil && ip.WithZone("").Unmap().IsUnspecified(); isWildcard {
		return netip.Addr{}, fault.WithHint(
			fault.Errorf(fault.Policy, "host %s stands for every address of this machine, so that every network could reach the page", name),
			"name one address, as 127.0.0.1; from another machine use a tunnel: ssh -L 3080:127.0.0.1:3080 MACHINE")
	}
	if err != nil {
		return netip.Addr{}, fault.Errorf(fault.Other, "host %q is no address: give one of this machine, as 127.0.0.1, or localhost", name)
	}
	return ip.Unmap(), nil
}

// cause is what the system said, without the address, which is told once.
func cause(err error) error {
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		return e.Err
	}
	return err
}

// taken says whether a port could not be had because somebody has it.
func taken(err error) bool { return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, addressInUse) }
