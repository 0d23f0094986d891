// Package credentials is the keys that rows need for services elsewhere: those
// of the environment first, then those of a file of the user's.
//
// It shows no key, and puts none into an environment.
package credentials

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins/settings"
	"dsh/internal/boot/slot"
	"dsh/internal/compose"
	"dsh/internal/fault"
)

// Service is the name under which the *Credentials are provided.
const Service = "credentials"

// Name is the plugin's.
const Name = "@deepseek-ai/dsh-credentials-local"

// Config is the configuration of the row: that of settings, for another file.
type Config = settings.Config

// Plugin provides the credentials and follows their file. A file that others
// may read, or that cannot be read, gives no keys; it is told, and keys of the
// environment are there all the same.
var Plugin = host.Plugin{
	Inject:   []host.Need{{Service: slot.HomePath}, {Service: slot.Environment}},
	Provides: []string{Service},
	Start: func(_ context.Context, r *host.Row) error {
		var config Config
		if err := r.Decode(&config); err != nil {
			return err
		}
		home, _ := host.Service[slot.HomePathFunc](r, slot.HomePath)
		environment, _ := host.Service[slot.LaunchEnvironment](r, slot.Environment)
		c := &Credentials{path: config.File(home, ".credentials.yaml"), environment: environment}
		reload := func() {
			for _, problem := range c.reload() {
				r.Logf("%s", told(problem))
			}
		}
		// Following comes first, so that no change is between it and reading.
		config.Follow(r, c.path, func() {
			r.Logf("read %s again", c.path)
			reload()
		})
		reload()
		r.Provide(Service, c)
		return nil
	},
}

// told is a problem with what would help, for a log.
func told(problem error) string {
	if hint := fault.Hint(problem); hint != "" {
		return problem.Error() + "; run: " + hint
	}
	return problem.Error()
}

// Credentials are keys by their names. They may be used from several goroutines.
type Credentials struct {
	path        string
	environment slot.LaunchEnvironment

	mu      sync.Mutex
	entries map[string]entry
	problem error
	exposed bool // the file is not used, for others may read it
}

// entry is what the file says of one name: the key, or the file that holds it.
type entry struct {
	key  Secret
	file string // absolute, "" where the key is here
}

// Credential is a key and where it came from.
type Credential struct {
	Key Secret
	// From is "the environment", or the path of a file.
	From string
	// Exposed says that users besides the owner may read that file.
	Exposed bool
}

// Lookup is the key of that name, from the environment or the file; ok is
// false if neither has it. Files that the file names are read each time.
func (c *Credentials) Lookup(name string) (found Credential, ok bool, err error) {
	if v, ok := c.environment.Lookup(name); ok && strings.TrimSpace(v.Value) != "" {
		return Credential{Key: NewSecret(v.Value), From: "the environment"}, true, nil
	}
	c.mu.Lock()
	e, ok := c.entries[name]
	exposed := c.exposed
	c.mu.Unlock()
	// No change of the content tells that others may not read it any more.
	if exposed {
		c.reload()
		c.mu.Lock()
		e, ok = c.entries[name]
		c.mu.Unlock()
	}
	if !ok {
		return Credential{}, false, nil
	}
	if e.file == "" {
		return Credential{Key: e.key, From: c.path}, true, nil
	}
	found, err = ReadKeyFile(e.file)
	if err != nil {
		return Credential{}, false, fmt.Errorf("credential %s: %w", name, err)
	}
	return found, true, nil
}

// Names are the names that the file has keys for, sorted.
func (c *Credentials) Names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := make([]string, 0, len(c.entries))
	for name := range c.entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Problem is why keys of the file as it is now are missing, nil if none are.
func (c *Credentials) Problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.problem
}

// maxFile and maxKey are how large a file of credentials and one key may be,
// in bytes.
const (
	maxFile = 1 << 20
	maxKey  = 64 << 10
)

// reload reads the file again. A text that is wrong leaves the keys as they
// were; a file that others may read takes them away.
func (c *Credentials) reload() (problems []error) {
	entries, problems, keep := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !keep {
		c.entries = entries
	}
	c.problem = errors.Join(problems...)
	c.exposed = fault.ClassOf(c.problem) == fault.Policy
	return problems
}

func (c *Credentials) read() (entries map[string]entry, problems []error, keep bool) {
	info, err := os.Stat(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, false
	}
	if err == nil && isExposed(info) {
		err := fault.WithHint(fault.Errorf(fault.Policy, "%s is not used, for other users may read it (its mode is %04o)", c.path, info.Mode().Perm()),
			"%s", fault.ShellWords("chmod", "600", c.path))
		return nil, []error{err}, false
	}
	text, err := settings.ReadSmall(c.path, maxFile)
	if err != nil {
		return nil, []error{err}, true
	}
	if settings.IsEmpty(text) {
		return nil, nil, false
	}
	value, err := compose.ParseValue(compose.Source{File: c.path, Dir: filepath.Dir(c.path)}, text)
	if err != nil {
		// The words of the error may quote the text.
		at := ""
		if e, ok := errors.AsType[*compose.SyntaxError](err); ok && e.Line > 0 {
			at = fmt.Sprintf(":%d", e.Line)
		}
		return nil, []error{fault.Errorf(fault.Composition, "%s%s: this is no YAML; the keys stay as they were", c.path, at)}, true
	}
	m, ok := value.(*compose.Map)
	if !ok && value != nil {
		return nil, []error{fault.Errorf(fault.Composition, "%s: credentials are a mapping of names to keys; the keys stay as they were", c.path)}, true
	}
	entries = map[string]entry{}
	for name, value := range m.All() {
		e, err := c.entry(value)
		if err != nil {
			problems = append(problems, fault.Errorf(fault.Composition, "%s: %s %w", c.path, name, err))
			continue
		}
		entries[name] = e
	}
	return entries, problems, false
}

// entry reads what stands under a name: the key, or {file: path}, with the path
// by the rules of layers.
func (c *Credentials) entry(value compose.Value) (entry, error) {
	switch v := value.(type) {
	case string:
		if strings.TrimSpace(v) == "" {
			return entry{}, errors.New("is empty")
		}
		return entry{key: NewSecret(v)}, nil
	case *compose.Map:
		file, _ := v.Get("file")
		path, ok := file.(string)
		if !ok || path == "" || v.Len() != 1 {
			return entry{}, errors.New("is neither a key nor {file: PATH}")
		}
		userHome, _ := os.UserHomeDir()
		src := compose.Source{File: c.path, Dir: filepath.Dir(c.path), UserHome: userHome}
		path = src.Path(path)
		if address, ok := compose.FilePath(path); ok {
			path = address
		}
		return entry{file: path}, nil
	case float64, bool:
		return entry{}, errors.New("is no text: put the key in quotes")
	default:
		return entry{}, errors.New("is neither a key nor {file: PATH}")
	}
}

// ReadKeyFile reads a file that holds one key and nothing else.
func ReadKeyFile(path string) (Credential, error) {
	text, err := settings.ReadSmall(path, maxKey)
	if err != nil {
		return Credential{}, err
	}
	key := strings.TrimSpace(strings.TrimPrefix(string(text), "\ufeff"))
	switch {
	case key == "":
		return Credential{}, fault.Errorf(fault.Environment, "read %s: there is no key in it", path)
	case strings.ContainsAny(key, "\r\n\x00"):
		return Credential{}, fault.Errorf(fault.Environment, "read %s: it holds more than one key alone", path)
	}
	info, err := os.Stat(path)
	return Credential{Key: NewSecret(key), From: path, Exposed: err == nil && isExposed(info)}, nil
}

// isExposed says whether users besides the owner may read a file. The modes of
// Windows do not tell.
func isExposed(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}
