package registry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dsh/internal/fault"
)

// DefaultRegistry is where packages come from when nothing else is configured.
const DefaultRegistry = "https://registry.npmjs.org/"

// maxConnections bounds the connections to one host, whatever maxsockets says:
// some resolvers stall when many names are looked up at once.
const maxConnections = 16

// longestWait bounds the pause before a retry, whatever the configuration says.
const longestWait = 10 * time.Minute

// Config is what .npmrc files and the environment say about registries. Make
// one with LoadConfig.
type Config struct {
	Registry     string            // default registry; ends with a slash
	Scopes       map[string]string // registry by "@scope"; each ends with a slash
	FetchRetries int               // further attempts after the first
	RetryMinWait time.Duration     // before the first of them
	RetryMaxWait time.Duration     // before any of them
	FetchTimeout time.Duration     // how long a server may send nothing; 0 is for ever
	MaxSockets   int               // connections to one host
	StrictSSL    bool              // check certificates

	retryFactor int // by which each wait is longer than the one before

	// authorities are the certificates, in PEM form, of those that are trusted, nil
	// for the system's. They are read when the first connection needs them.
	authorities func() ([]byte, error)
	proxies     *proxies
	// What proves to a host who asks, by the host as hostOf writes it.
	certificates map[string]*tls.Certificate
	// Behind a pointer, so that printing a Config prints no token.
	credentials *credentials
}

// LoadConfig reads .npmrc files by read, the one that counts most first
// (project, user, global), and the environment, which counts more than all of them:
// npm_config_* and NPM_CONFIG_*, and the usual proxy variables. Files that do
// not exist are left out.
func LoadConfig(read func(name string) ([]byte, error), getenv func(string) string, files ...string) (Config, error) {
	l := loader{read: read, getenv: getenv, settings: map[string]located{}}
	l.environment(os.Environ())
	for _, file := range files {
		if err := l.file(file); err != nil {
			return Config{}, err
		}
	}
	if file := l.globalFile(); file != "" && !slices.Contains(files, file) {
		if err := l.file(file); err != nil {
			return Config{}, err
		}
	}
	return l.config()
}

// RegistryFor is the registry of a package, by its scope.
func (c Config) RegistryFor(name string) string {
	if scope, _, ok := strings.Cut(name, "/"); ok && strings.HasPrefix(name, "@") {
		if registry, ok := c.Scopes[scope]; ok {
			return registry
		}
	}
	return c.Registry
}

// SetRegistry replaces the default registry.
func (c *Config) SetRegistry(address string) error {
	registry, user, err := parseRegistry(address)
	if err != nil {
		return fault.Errorf(fault.Other, "registry %s: %w", ShownAddress(address), err)
	}
	c.Registry = registry
	c.credentials = c.credentials.allowing(registry, user)
	return nil
}

// located is a setting and the file that it stands in.
type located struct {
	setting
	file string
}

type loader struct {
	read     func(string) ([]byte, error)
	getenv   func(string) string
	settings map[string]located
}

func (l *loader) file(file string) error {
	text, err := l.read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Errorf(fault.Environment, "read the npm configuration: %w", err)
	}
	for key, s := range parseNpmrc(string(text), l.getenv) {
		if _, stronger := l.settings[key]; !stronger {
			l.settings[key] = located{s, file}
		}
	}
	return nil
}

// environment takes the keys of scopes and hosts, which are not known before. Of
// the others it is known what they are called, and they are asked for.
func (l *loader) environment(list []string) {
	const mark = "npm_config_"
	for _, entry := range list {
		name, _, _ := strings.Cut(entry, "=")
		if len(name) <= len(mark) || !strings.EqualFold(name[:len(mark)], mark) {
			continue
		}
		key := name[len(mark):]
		if strings.HasPrefix(key, "@") {
			key = strings.ToLower(key)
		} else if !strings.HasPrefix(key, "//") {
			continue
		}
		if value := l.getenv(name); value != "" {
			l.settings[key] = located{setting: setting{values: []string{value}}, file: name}
		}
	}
}

// globalFile is where npm has the configuration of the whole machine: below its
// prefix, which by default is where Node.js is installed.
func (l *loader) globalFile() string {
	if s, ok := l.get("globalconfig"); ok {
		return l.path(s)
	}
	prefix := l.getenv("PREFIX")
	if s, ok := l.get("prefix"); ok {
		prefix = l.path(s)
	}
	if prefix == "" {
		prefix = nodePrefix(l.getenv("PATH"))
	}
	if prefix == "" {
		return ""
	}
	return filepath.Join(prefix, "etc", "npmrc")
}

// nodePrefix is the directory that Node.js is installed in, "" for none.
func nodePrefix(path string) string {
	name, levels := "node", 2
	if runtime.GOOS == "windows" {
		name, levels = "node.exe", 1
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		for range levels {
			file = filepath.Dir(file)
		}
		return file
	}
	return ""
}

// env is the value of npm_config_<key>, with the key as npm spells it there.
func (l *loader) env(key string) (value, name string) {
	names := []string{"npm_config_" + key}
	if !strings.HasPrefix(key, "//") && key[0] != '@' {
		key = strings.ReplaceAll(key, "-", "_")
		names = []string{"npm_config_" + key, "NPM_CONFIG_" + strings.ToUpper(key)}
	} else {
		names = append(names, "NPM_CONFIG_"+key)
	}
	for _, name := range names {
		if value := l.getenv(name); value != "" {
			return value, name
		}
	}
	return "", ""
}

// get is the setting of a key, the environment first.
func (l *loader) get(keys ...string) (located, bool) {
	for _, key := range keys {
		if value, name := l.env(key); value != "" {
			return located{setting: setting{values: []string{value}}, file: name}, true
		}
	}
	for _, key := range keys {
		if s, ok := l.settings[key]; ok && s.last() != "null" && s.last() != "" {
			return s, true
		}
	}
	return located{}, false
}

func (l *loader) config() (Config, error) {
	c := Config{
		Registry:     DefaultRegistry,
		Scopes:       map[string]string{},
		FetchRetries: l.number("fetch-retries", 2),
		RetryMinWait: time.Duration(l.number("fetch-retry-mintimeout", 500)) * time.Millisecond,
		RetryMaxWait: min(time.Duration(l.number("fetch-retry-maxtimeout", 60_000))*time.Millisecond, longestWait),
		retryFactor:  max(1, l.number("fetch-retry-factor", 2)),
		FetchTimeout: time.Duration(l.number("fetch-timeout", 60_000)) * time.Millisecond,
		MaxSockets:   max(1, min(l.number("maxsockets", maxConnections), maxConnections)),
		StrictSSL:    true,
	}
	users := map[string]*url.Userinfo{}
	if s, ok := l.get("strict-ssl"); ok {
		c.StrictSSL = s.last() != "false"
	}
	if s, ok := l.get("registry"); ok {
		registry, user, err := s.registry()
		if err != nil {
			return Config{}, err
		}
		c.Registry = registry
		users[registry] = user
	}
	for _, key := range slices.Sorted(maps.Keys(l.settings)) {
		scope, ok := strings.CutSuffix(key, ":registry")
		if !ok || !strings.HasPrefix(scope, "@") {
			continue
		}
		s, ok := l.get(key)
		if !ok {
			continue
		}
		registry, user, err := s.registry()
		if err != nil {
			return Config{}, err
		}
		c.Scopes[scope] = registry
		users[registry] = user
	}
	c.authorities = sync.OnceValues(l.authorities)
	var err error
	if c.proxies, err = l.proxies(); err != nil {
		return Config{}, err
	}
	if c.certificates, err = l.certificates(append(slices.Collect(maps.Values(c.Scopes)), c.Registry)); err != nil {
		return Config{}, err
	}
	c.credentials = l.credentials(append(slices.Collect(maps.Values(c.Scopes)), c.Registry))
	for registry, user := range users {
		c.credentials = c.credentials.allowing(registry, user)
	}
	return c, nil
}

// number is a setting that is a whole number and not negative; npm, too, goes
// on with the default when it is something else.
func (l *loader) number(key string, otherwise int) int {
	s, _ := l.get(key)
	if n, err := strconv.Atoi(s.last()); err == nil && n >= 0 && n < 1<<31 {
		return n
	}
	return otherwise
}

func (s located) registry() (string, *url.Userinfo, error) {
	registry, user, err := parseRegistry(s.last())
	if err != nil && s.missing != "" {
		err = errors.New("the variable " + s.missing + " is not set")
	}
	if err != nil {
		return "", nil, fault.Errorf(fault.Other, "%s: registry %s: %w", s.file, ShownAddress(s.last()), err)
	}
	return registry, user, nil
}

var errAddress = errors.New("it is no http or https address")

// parseRegistry is the address with a slash at its end, and the user it names.
func parseRegistry(address string) (string, *url.Userinfo, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", nil, errAddress
	}
	user := u.User
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return strings.TrimRight(u.String(), "/") + "/", user, nil
}

// ShownAddress is an address as messages may show it: without user, password
// and query, which can be secrets.
func ShownAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		if strings.ContainsAny(address, "@?") {
			return "(an address that cannot be read)"
		}
		return strconv.Quote(address)
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// authorities are the certificates of ca and cafile, which as in npm are trusted
// in place of the system's.
func (l *loader) authorities() ([]byte, error) {
	var all []byte
	add := func(file string, pem []byte) error {
		if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			return fault.Errorf(fault.Other, "%s holds no certificate in PEM form", file)
		}
		all = append(append(all, pem...), '\n')
		return nil
	}
	if s, ok := l.get("ca"); ok {
		for _, value := range s.values {
			if err := add(s.file+": ca", []byte(strings.ReplaceAll(value, `\n`, "\n"))); err != nil {
				return nil, err
			}
		}
	}
	if s, ok := l.get("cafile"); ok {
		file := l.path(s)
		pem, err := l.read(file)
		if err != nil {
			return nil, fault.Errorf(fault.Environment, "read the cafile that %s names: %w", s.file, err)
		}
		if err := add(file, pem); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// roots are the authorities that are trusted, nil for the system's.
func (c Config) roots() (*x509.CertPool, error) {
	if c.authorities == nil {
		return nil, nil
	}
	pem, err := c.authorities()
	if err != nil || pem == nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return pool, nil
}

// certificates are the client certificates: of hosts, by the keys
// "//host/:certfile" and "//host/:keyfile", and of all registries, by "cert" and
// "key", which hold the text itself. Either kind of key may stand in either place.
func (l *loader) certificates(registries []string) (map[string]*tls.Certificate, error) {
	prefixes := map[string]bool{}
	for key := range l.settings {
		at := strings.LastIndexByte(key, ':')
		if at < 0 || !strings.HasPrefix(key, "//") {
			continue
		}
		switch key[at+1:] {
		case "cert", "key", "certfile", "keyfile":
			prefixes[key[:at+1]] = true
		}
	}
	var out map[string]*tls.Certificate
	add := func(host string, cert *tls.Certificate) {
		if out == nil {
			out = map[string]*tls.Certificate{}
		}
		out[host] = cert
	}
	general, err := l.certificate("")
	if err != nil {
		return nil, err
	}
	for _, registry := range registries {
		if u, err := url.Parse(registry); err == nil && general != nil {
			add(hostOf(u), general)
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(prefixes)) {
		cert, err := l.certificate(prefix)
		if err != nil {
			return nil, err
		}
		host, _, _ := strings.Cut(prefix[2:len(prefix)-1], "/")
		add(strings.TrimSuffix(strings.ToLower(host), ":443"), cert)
	}
	return out, nil
}

// certificate is what the keys with a prefix name, nil for none.
func (l *loader) certificate(prefix string) (*tls.Certificate, error) {
	certificate, where, err := l.pem(prefix + "cert")
	if err != nil {
		return nil, err
	}
	key, keyWhere, err := l.pem(prefix + "key")
	if err != nil {
		return nil, err
	}
	switch {
	case certificate == nil && key == nil:
		return nil, nil
	case key == nil:
		return nil, fault.Errorf(fault.Other, "%s: %scertfile has no %skeyfile beside it", where, prefix, prefix)
	case certificate == nil:
		return nil, fault.Errorf(fault.Other, "%s: %skeyfile has no %scertfile beside it", keyWhere, prefix, prefix)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fault.Errorf(fault.Other, "%s: %scertfile and %skeyfile are no certificate and its key: %w", where, prefix, prefix, err)
	}
	return &pair, nil
}

// pem is a text in PEM form, of a key or of the file that key+"file" names.
func (l *loader) pem(key string) (text []byte, where string, err error) {
	if s, ok := l.get(key); ok {
		return []byte(strings.ReplaceAll(s.last(), `\n`, "\n")), s.file, nil
	}
	s, ok := l.get(key + "file")
	if !ok {
		return nil, "", nil
	}
	if text, err = l.read(l.path(s)); err != nil {
		return nil, "", fault.Errorf(fault.Environment, "read the %sfile that %s names: %w", key, s.file, err)
	}
	return text, s.file, nil
}

// path is a setting that names a file, relative to the file it stands in.
func (l *loader) path(s located) string {
	file := s.last()
	if rest, ok := strings.CutPrefix(filepath.ToSlash(file), "~/"); ok {
		home := l.getenv("HOME")
		if home == "" {
			home = l.getenv("USERPROFILE")
		}
		return filepath.Join(home, rest)
	}
	if filepath.IsAbs(file) || !filepath.IsAbs(s.file) {
		return file
	}
	return filepath.Join(filepath.Dir(s.file), file)
}
