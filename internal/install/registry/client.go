package registry

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"dsh/internal/fault"
	"dsh/internal/npmrange"
)

const (
	defaultMaxDocument = 64 << 20 // bytes of one package document
	defaultMaxTarball  = 1 << 30  // bytes of one archive
	maxDocuments       = 128      // on their way at once; over HTTP/1.1 they wait for connections
	documentStreams    = 64       // of them over one connection
)

// Options are the choices that are not the configuration's. The zero value is
// right for most.
type Options struct {
	UserAgent  string // "" is "dsh"
	MaxTarball int64  // bytes of one archive, packed; 0 is 1 GiB
	// Transport replaces the network, below credentials and time-outs.
	Transport http.RoundTripper
	CacheDir  string // where documents are kept; "" keeps none on disk
	Mode      CacheMode
	ReadOnly  bool // use what is kept and write nothing
}

// CacheMode says when a document that is kept on disk is used.
type CacheMode int

const (
	// UseCache takes a document younger than five minutes, or than the age that
	// its server allows, as it is, and asks whether older ones still hold.
	UseCache      CacheMode = iota
	Fresh                   // ask about all
	PreferOffline           // take what is kept, however old, and ask for the rest
	Offline                 // ask for nothing
)

// Client asks registries. It remembers what it was told: a package is asked
// for once. It is safe for use by several goroutines.
type Client struct {
	config      Config
	http        *http.Client
	base        http.RoundTripper
	userAgent   string
	maxDocument int64
	maxTarball  int64
	slots       chan struct{} // one for each document on its way
	seats       *seats
	documents   flight[document, *Packument]
	keyrings    flight[keysQuestion, *keyring]
	cache       *cache
	mode        CacheMode
	// now is one time for all questions of how old a kept document is: two
	// packages that ask for a third get the same answer.
	now time.Time

	mu    sync.Mutex
	later []*keptDocument // to be kept when nobody reads the older ones any more
}

// New makes a client. Its caller closes it.
func New(config Config, opts Options) (*Client, error) {
	c := &Client{
		config:      config,
		base:        opts.Transport,
		userAgent:   opts.UserAgent,
		maxDocument: defaultMaxDocument,
		maxTarball:  opts.MaxTarball,
	}
	if config.Registry == "" {
		return nil, errors.New("registry: the configuration is not from LoadConfig")
	}
	documents := maxDocuments
	if c.base == nil {
		c.base = &lateNetwork{build: sync.OnceValues(func() (*network, error) { return newNetwork(config) })}
		documents = min(documents, documentStreams*((min(connections, config.MaxSockets)+1)/2))
	}
	if c.userAgent == "" {
		c.userAgent = "dsh"
	}
	if c.maxTarball == 0 {
		c.maxTarball = defaultMaxTarball
	}
	c.slots = make(chan struct{}, documents)
	c.seats = newSeats()
	c.documents.keep = func(err error) bool { return errors.Is(err, errGone) }
	// Each package would ask again, and wait as long.
	c.keyrings.keep = func(err error) bool { return fault.ClassOf(err) == fault.Network }
	c.mode = opts.Mode
	c.now = time.Now()
	if opts.CacheDir != "" {
		c.cache = newCache(opts.CacheDir, opts.ReadOnly)
		c.cache.asker = c.config.asker
	}
	c.http = &http.Client{
		Transport:     &stallTransport{next: &authTransport{next: c.base, credentials: config.credentials}, after: config.FetchTimeout},
		CheckRedirect: checkRedirect,
	}
	return c, nil
}

// Close lets go of the connections that are kept open, and finishes what is
// kept on disk.
func (c *Client) Close() {
	for _, k := range c.later {
		c.cache.save(k)
	}
	c.cache.close()
	if t, ok := c.base.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// HTTP is the client underneath, for archives that are fetched by address: it
// uses the proxies, certificates and time-outs of the configuration, and sends
// a token only to the address that it is for.
func (c *Client) HTTP() *http.Client { return c.http }

// RegistryFor is the registry of a package.
func (c *Client) RegistryFor(name string) string { return c.config.RegistryFor(name) }

// Registries is all that say where packages come from, the same for the same
// settings: the default registry, and "@scope=address" for each scope, sorted.
func (c *Client) Registries() []string {
	list := []string{c.config.Registry}
	for _, scope := range slices.Sorted(maps.Keys(c.config.Scopes)) {
		list = append(list, scope+"="+c.config.Scopes[scope])
	}
	return list
}

// Packument is all that the registry knows about a package: its versions and
// tags. The error is a *NotFoundError, an *AuthError, a *NetworkError, or the
// context's.
func (c *Client) Packument(ctx context.Context, name string) (*Packument, error) {
	return c.packument(ctx, document{name: name})
}

func (c *Client) packument(ctx context.Context, d document) (*Packument, error) {
	d.registry = c.RegistryFor(d.name)
	p, err := c.documents.do(ctx, d, func() (*Packument, error) { return c.load(ctx, d) })
	if errors.Is(err, errGone) {
		return nil, &NotFoundError{Name: d.name, Registry: d.registry, Kept: errors.Is(err, errGoneBefore)}
	}
	return p, err
}

// Find is the version that npm takes for what is wanted of a package, as Pick
// says. One exact version is asked for alone. Where nothing fits in a document
// that was kept, the registry is asked for what it has now.
func (c *Client) Find(ctx context.Context, name, wanted string, opts PickOptions) (Choice, error) {
	if version, err := npmrange.ParseVersion(wanted); err == nil && opts.Before.IsZero() {
		m, err := c.Version(ctx, name, version)
		return Choice{Manifest: m}, err
	}
	choice, ok := c.findKept(document{name: name, registry: c.RegistryFor(name)}, wanted, opts)
	if ok {
		return c.withLibc(ctx, choice)
	}
	var d document
	p, err := c.reasonable(func(again bool) (*Packument, error) {
		d = document{name: name, again: again}
		p, err := c.packument(ctx, d)
		if err == nil && !opts.Before.IsZero() && !p.dated(opts.Before) {
			// The abbreviated form has no times.
			d.full = true
			p, err = c.packument(ctx, d)
		}
		return p, err
	}, func(p *Packument) bool {
		m, err := Pick(p, wanted, opts)
		return err == nil && m.sound()
	})
	if err != nil {
		return Choice{}, err
	}
	if choice, err = p.pick(wanted, opts); err != nil || d.full {
		return choice, c.explained(err)
	}
	return c.withLibc(ctx, choice)
}

// Published is a time at which a version was published already, which may be later
// than before only where it was published after that; zero where its registry
// does not say it. What is kept is believed, however old it is: versions stay
// what they are.
func (c *Client) Published(ctx context.Context, name, version string, before time.Time) (at time.Time, err error) {
	look := func(p *Packument) bool {
		i := p.find(version)
		if i < 0 {
			return false
		}
		r := p.record(i)
		at = p.known(r.time())
		return !r.time().IsZero() || !at.IsZero() && !at.After(before)
	}
	d := document{name: name, registry: c.RegistryFor(name)}
	for _, d.full = range []bool{false, true} {
		found := false
		c.cache.lend(d, func(kept *keptDocument) { found = look(kept.packument) })
		if found {
			return at, nil
		}
	}
	for _, full := range []bool{false, true} {
		p, err := c.packument(ctx, document{name: name, full: full})
		if err != nil {
			return time.Time{}, err
		}
		if look(p) {
			return at, nil
		}
	}
	return time.Time{}, nil
}

// explained adds to an error that nobody was asked.
func (c *Client) explained(err error) error {
	if none, ok := errors.AsType[*NoMatchError](err); ok {
		none.Kept = c.mode == Offline
	}
	return err
}

// reasonable is a document, asked for again where it was kept and is not good
// for what it is wanted for.
func (c *Client) reasonable(get func(again bool) (*Packument, error), good func(*Packument) bool) (*Packument, error) {
	p, err := get(false)
	if err != nil || !p.kept || c.mode == Offline || good(p) {
		return p, err
	}
	return get(true)
}

// withLibc adds what abbreviated documents leave out: the C libraries that a
// version for some platforms is for. Whether they are known must not depend on
// which document was at hand.
func (c *Client) withLibc(ctx context.Context, choice Choice) (Choice, error) {
	if !choice.lacksLibc() {
		return choice, nil
	}
	own, err := c.version(ctx, choice.Name, choice.Version)
	if err != nil && fault.ClassOf(err) == fault.Package {
		return choice, nil // only the document about all versions has it
	}
	if err != nil {
		return Choice{}, err
	}
	whole := *choice.Manifest
	whole.Libc = own.Libc
	choice.Manifest = &whole
	return choice, nil
}

// findKept finds a version in a document that is kept on disk, of which nothing
// else stays in memory: a tree asks once or twice about each of a thousand
// packages, and memory is dearer than reading such a file again.
func (c *Client) findKept(d document, wanted string, opts PickOptions) (choice Choice, ok bool) {
	if c.mode == Fresh || c.documents.has(d) {
		return Choice{}, false
	}
	c.cache.lend(d, func(kept *keptDocument) {
		p := kept.packument
		if !c.usable(d, kept) || !opts.Before.IsZero() && !p.dated(opts.Before) {
			return
		}
		p.lent = true
		var err error
		choice, err = p.pick(wanted, opts)
		// An error would need more of the document.
		ok = err == nil && (choice.sound() || c.mode == Offline)
	})
	return choice, ok
}

// Version is the manifest of one exact version. It asks for that version alone
// where the registry serves such documents, which is far less to read.
func (c *Client) Version(ctx context.Context, name string, version npmrange.Version) (*Manifest, error) {
	return c.version(ctx, name, version.String())
}

func (c *Client) version(ctx context.Context, name, version string) (*Manifest, error) {
	d := document{name: name, version: version, registry: c.RegistryFor(name)}
	all := document{name: name, registry: d.registry}
	if p, ok := c.documents.peek(all); ok {
		switch m, err := p.exact(version); {
		case err != nil && !p.kept:
			return nil, err
		case err == nil && !m.lacksLibc() && (m.sound() || !p.kept):
			return m, nil
		}
	} else if !c.documents.has(d) {
		if m := c.keptVersion(all, version); m != nil && !m.lacksLibc() && (m.sound() || c.mode == Offline) {
			return m, nil
		}
	}
	good := func(p *Packument) bool {
		m, err := p.exact(version)
		return err == nil && m.sound()
	}
	p, err := c.reasonable(func(again bool) (*Packument, error) {
		d.again = again
		return c.documents.do(ctx, d, func() (*Packument, error) { return c.load(ctx, d) })
	}, good)
	if !errors.Is(err, errGone) && !errors.Is(err, errStatus) {
		if err != nil {
			return nil, err
		}
		return p.exact(version)
	}
	// Nothing of use there: the registry may not serve such documents, or have
	// no such version, and its document about the package says which.
	if p, err = c.reasonable(func(again bool) (*Packument, error) {
		all.again = again
		return c.packument(ctx, all)
	}, good); err != nil {
		return nil, err
	}
	m, err := p.exact(version)
	if err != nil || !m.lacksLibc() {
		return m, c.explained(err)
	}
	all.full = true
	p, err = c.packument(ctx, all)
	if err != nil && fault.ClassOf(err) == fault.Package {
		return m, nil // it has the abbreviated document only
	}
	if err != nil {
		return nil, err
	}
	if whole, err := p.Manifest(version); err != nil || whole != nil {
		return whole, err
	}
	return m, nil
}

// Forget has the next command ask for what is kept about a package and one
// version of it: for when its archive turns out not to be what they say.
func (c *Client) Forget(name, version string) {
	registry := c.RegistryFor(name)
	c.cache.forget(document{name: name, registry: registry})
	c.cache.forget(document{name: name, registry: registry, full: true})
	c.cache.forget(document{name: name, registry: registry, version: version})
}

// Described is all that the registry knows about one version, also where the
// abbreviated document is at hand, which says neither which scripts there are
// nor whether it is a layer.
func (c *Client) Described(ctx context.Context, name, version string) (*Manifest, error) {
	d := document{name: name, version: version, registry: c.RegistryFor(name), full: true}
	p, err := c.documents.do(ctx, d, func() (*Packument, error) { return c.load(ctx, d) })
	if errors.Is(err, errGone) || errors.Is(err, errStatus) {
		p, err = c.packument(ctx, document{name: name, full: true})
	}
	if err != nil {
		return nil, err
	}
	return p.exact(version)
}

// escapedName is the name as registries have it in addresses: @scope%2fname.
func escapedName(name string) (string, bool) {
	scope, bare, scoped := strings.Cut(name, "/")
	if !scoped {
		return url.PathEscape(name), nameOK(name) && name[0] != '@'
	}
	if !strings.HasPrefix(scope, "@") || !nameOK(scope[1:]) || !nameOK(bare) {
		return "", false
	}
	return "@" + url.PathEscape(scope[1:]) + "%2f" + url.PathEscape(bare), true
}

// nameOK keeps out what would lead to another place of the server.
func nameOK(s string) bool {
	return s != "" && s[0] != '.' && s[0] != '-' && !strings.ContainsAny(s, "/\\%?#\x00")
}

// TarballURL is where a registry keeps the archive of a version by custom, for
// when its manifest is not at hand.
func (c *Client) TarballURL(name, version string) string {
	return tarballURL(c.RegistryFor(name), name, version)
}

func tarballURL(registry, name, version string) string {
	return registry + name + "/-/" + name[strings.LastIndexByte(name, '/')+1:] + "-" + url.PathEscape(version) + ".tgz"
}
