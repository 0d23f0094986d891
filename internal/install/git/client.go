package git

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Options are what a client needs of the world.
type Options struct {
	// TempDir makes an empty directory, which the caller takes away in the end.
	TempDir func() (string, error)
	// Getenv is the environment, of which git gets PATH, what the system itself
	// needs, and for ssh the user's home and agent; nil is the process's own.
	Getenv func(string) string
	// Reach says how a remote with http or https is reached; nil is directly.
	Reach func(remote *url.URL) (Reach, error)
	// Silence is how long a server may send nothing; 0 is a minute.
	Silence time.Duration
	// MaxBytes bounds what one repository may send for a commit, packed; 0 is 2 GiB.
	MaxBytes int64
	// Submodule says why the repository of a submodule, which nobody asked for by
	// name, may not be asked; nil lets all in.
	Submodule func(address string) error
	// Received is told of bytes that came in, in steps as large as git tells them;
	// it may be nil.
	Received func(bytes int64)
	// Retry calls an attempt again after a failure of the network; nil is once.
	Retry func(ctx context.Context, attempt func() error) error
}

// Reach is the way to a server.
type Reach struct {
	Proxy    string // address of a proxy, "" for none; it may hold a password
	CAFile   string // file of certificates that are trusted in place of the system's, "" for none
	Insecure bool   // certificates are not checked
}

// Client runs git. It is safe for several goroutines.
type Client struct {
	opts Options
	home func() (string, error) // an empty directory in which git finds no configuration

	mu   sync.Mutex
	refs map[string]*refsOnce // by remote
}

type refsOnce struct {
	once sync.Once
	refs []Ref
	err  error
}

// New makes a client.
func New(opts Options) *Client {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	if opts.Reach == nil {
		opts.Reach = func(*url.URL) (Reach, error) { return Reach{}, nil }
	}
	if opts.Silence == 0 {
		opts.Silence = time.Minute
	}
	if opts.MaxBytes == 0 {
		opts.MaxBytes = 2 << 30
	}
	if opts.Submodule == nil {
		opts.Submodule = func(string) error { return nil }
	}
	if opts.Retry == nil {
		opts.Retry = func(_ context.Context, attempt func() error) error { return attempt() }
	}
	return &Client{opts: opts, home: sync.OnceValues(opts.TempDir), refs: map[string]*refsOnce{}}
}

// remote is the address of a repository, checked.
type remote struct {
	text string // as the caller wrote it
	url  *url.URL
	told string // what git is told: without user and password for http and https
	user *url.Userinfo
}

// parseRemote reads https, ssh and file addresses, and http ones of this machine.
// Whatever else git takes for a remote can run programs.
func parseRemote(text string) (remote, error) {
	refuse := func(why string) (remote, error) { return remote{}, &RemoteError{Remote: text, Reason: why} }
	if strings.ContainsFunc(text, unicode.IsControl) {
		return refuse("has a control character in it")
	}
	u, err := url.Parse(text)
	if err != nil {
		return refuse("is no address")
	}
	r := remote{text: text, url: u}
	if u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return refuse("is no address of a repository")
	}
	if strings.HasPrefix(u.Host, "-") || strings.HasPrefix(u.Hostname(), "-") || strings.HasPrefix(u.User.Username(), "-") || strings.HasPrefix(u.Path, "/-") && u.Scheme == "ssh" {
		return refuse("begins a name with a dash, which programs take for an option")
	}
	// A host stands in a setting of git, and is an argument of ssh.
	if strings.ContainsFunc(u.Host, isOddInHost) {
		return refuse("has a host with a character in it that no host's name has")
	}
	switch u.Scheme {
	case "https", "http":
		if u.Hostname() == "" {
			return refuse("names no host")
		}
		if u.Scheme == "http" && !IsLoopback(u.Hostname()) {
			return refuse("is not encrypted; use https")
		}
		password, _ := u.User.Password()
		if strings.ContainsFunc(u.User.Username()+password, unicode.IsControl) {
			return refuse("has a control character in it")
		}
		plain := *u
		plain.User = nil
		r.told, r.user = plain.String(), u.User
	case "ssh":
		if u.Hostname() == "" {
			return refuse("names no host")
		}
		if _, has := u.User.Password(); has {
			return refuse("has a password in it; ssh uses keys")
		}
		r.told = text
	case "file":
		if u.Host != "" && u.Host != "localhost" || u.Path == "" {
			return refuse("is no path on this machine")
		}
		r.told = text
	default:
		return refuse("is neither https nor ssh nor file")
	}
	return r, nil
}

// isOddInHost reports whether a character is none of names and addresses of hosts
// and their ports. Letters of any script can be in a name.
func isOddInHost(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) && !strings.ContainsRune(".-_:[]%", r)
}

// IsLoopback reports whether a host is this machine, to which nothing need be
// encrypted.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Shown is a remote as messages may show it: without user and password, but with
// the user of ssh, who is no secret.
func Shown(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(an address that cannot be read)"
	}
	if u.Scheme == "ssh" && u.User != nil {
		u.User = url.User(u.User.Username())
	} else {
		u.User = nil
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}

// environment is what git runs in: nothing of the user's but what is named here.
func (c *Client) environment(r remote) ([]string, error) {
	home, err := c.home()
	if err != nil {
		return nil, err
	}
	env := []string{
		"LC_ALL=C",
		"HOME=" + home, // where there is no .netrc
		"XDG_CONFIG_HOME=" + home,
		"TMPDIR=" + home,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=",
		"SSH_ASKPASS=",
		"GIT_LFS_SKIP_SMUDGE=1",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_CEILING_DIRECTORIES=" + filepath.Dir(home),
		// The remote's own scheme alone: a redirect cannot lead to another.
		"GIT_ALLOW_PROTOCOL=" + r.scheme(),
	}
	pass := []string{"PATH", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP"}
	switch r.scheme() {
	case "ssh":
		env = append(env, "GIT_SSH_COMMAND=ssh -o BatchMode=yes", "GIT_SSH_VARIANT=ssh", "HOME="+c.opts.Getenv("HOME"))
		pass = append(pass, "SSH_AUTH_SOCK", "USERPROFILE", "LOGNAME", "USER")
	case "https", "http":
		reach, err := c.opts.Reach(r.url)
		if err != nil {
			return nil, err
		}
		if reach.Proxy != "" {
			env = append(env, "http_proxy="+reach.Proxy, "https_proxy="+reach.Proxy)
		}
		if reach.CAFile != "" {
			env = append(env, "GIT_SSL_CAINFO="+reach.CAFile)
		}
		if reach.Insecure {
			env = append(env, "GIT_SSL_NO_VERIFY=1")
		}
		if r.user != nil {
			password, _ := r.user.Password()
			env = append(env, "DSH_GIT_USER="+r.user.Username(), "DSH_GIT_PASSWORD="+password)
		}
	}
	for _, name := range pass {
		if value := c.opts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env, nil
}

func (r remote) scheme() string {
	if r.url == nil {
		return "" // nothing is reached
	}
	return r.url.Scheme
}

// credentials answers git's question for the password of the remote's own host
// from the environment, so that it stands on no command line and goes to no other
// host.
const credentials = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$DSH_GIT_USER" "$DSH_GIT_PASSWORD"; }; f`

// settings are the options of git that stand before its command.
func (c *Client) settings(r remote) []string {
	list := []string{
		"core.hooksPath=" + os.DevNull,
		"core.fsmonitor=false",
		"core.askPass=",
		"core.alternateRefsCommand=",
		"protocol.ext.allow=never",
		"credential.helper=",
		"fetch.recurseSubmodules=false",
		"fetch.writeCommitGraph=false",
		"fetch.fsckObjects=false",
		"fetch.unpackLimit=1", // so that git tells how much has come in
		"gc.auto=0",
		"maintenance.auto=false",
		"core.disambiguate=commit",
		"http.followRedirects=initial",
		"http.lowSpeedLimit=1",
		"http.lowSpeedTime=" + seconds(c.opts.Silence),
	}
	if r.user != nil {
		origin := url.URL{Scheme: r.url.Scheme, Host: r.url.Host}
		list = append(list, "credential."+origin.String()+".helper="+credentials)
	}
	if r.told != "" {
		list = append(list, "remote."+origin+".url="+r.told)
	}
	args := make([]string, 0, 2*len(list))
	for _, setting := range list {
		args = append(args, "-c", setting)
	}
	return args
}

// origin is what a remote is called in the repositories that are made for it.
const origin = "origin"
