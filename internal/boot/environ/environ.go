// Package environ is the environment that a boot runs with: the variables of
// the process, then those of the project's .env file, then those of the home's,
// as one snapshot that remembers where each value came from.
//
// It is not the environment of this process, which it neither reads nor
// changes, and it decides nothing about what variables mean.
package environ

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
)

// Source is the layer that a variable came from.
type Source string

// The layers, strongest first.
const (
	Process    Source = "process"     // the launching environment
	ProjectEnv Source = "project-env" // <cwd>/.env
	UserEnv    Source = "user-env"    // <home>/.env
)

// Variable is one variable and where it came from.
type Variable struct {
	Name, Value string
	Source      Source
	// Path is the .env file, "" for Process.
	Path string
}

// Snapshot is an environment that never changes. The zero value is empty.
type Snapshot struct {
	variables []Variable     // those of the process in its order, then what the files added
	at        map[string]int // by key
	foldNames bool
}

// Lookup returns the variable of that name. On Windows case does not matter.
func (s Snapshot) Lookup(name string) (Variable, bool) {
	i, ok := s.at[s.key(name)]
	if !ok {
		return Variable{}, false
	}
	return s.variables[i], true
}

// Getenv is the value of the variable, "" when it is not set.
func (s Snapshot) Getenv(name string) string {
	v, _ := s.Lookup(name)
	return v.Value
}

// add adds a variable unless one of that name is there.
func (s *Snapshot) add(v Variable) {
	key := s.key(v.Name)
	if _, ok := s.at[key]; ok {
		return
	}
	s.at[key] = len(s.variables)
	s.variables = append(s.variables, v)
}

func (s Snapshot) key(name string) string {
	if s.foldNames {
		return strings.ToUpper(name)
	}
	return name
}

// Warning is a .env file that was left out.
type Warning struct {
	Path string
	Err  error
}

// String is the line to print.
func (w Warning) String() string { return fmt.Sprintf("failed to load .env: %v", w.Err) }

// Load lays the .env files of cwd and home under the variables of the process,
// which are "NAME=value" strings. A variable that is set, even to nothing, is
// never replaced by a weaker layer. Where cwd is the home, the one file is the
// project's.
//
// A file that does not exist is no matter; one that cannot be read is left out
// with a warning. A file that sets a name that only the launching environment
// may set is a *[RefusedError], whatever the process sets, and then nothing of
// either file is used.
//
// cwd and home are absolute, and read is os.ReadFile but in tests.
func Load(process []string, cwd, home string, read func(path string) ([]byte, error)) (Snapshot, []Warning, error) {
	return load(process, cwd, home, read, runtime.GOOS == "windows")
}

func load(process []string, cwd, home string, read func(string) ([]byte, error), foldNames bool) (Snapshot, []Warning, error) {
	cwd, home = filepath.Clean(cwd), filepath.Clean(home)
	homeFile := filepath.Join(home, ".env")
	atHome := cwd == home || foldNames && strings.EqualFold(cwd, home)
	layers := []layer{{source: ProjectEnv, path: filepath.Join(cwd, ".env"), ofHome: atHome}}
	if !atHome {
		layers = append(layers, layer{source: UserEnv, path: homeFile, ofHome: true})
	}

	var warnings []Warning
	for i := range layers {
		l := &layers[i]
		if err := l.load(read); err != nil {
			warnings = append(warnings, Warning{Path: l.path, Err: err})
		}
		if err := l.check(homeFile); err != nil {
			return Snapshot{}, warnings, err
		}
	}

	s := Snapshot{foldNames: foldNames, at: make(map[string]int, len(process))}
	for _, entry := range process {
		// Windows has entries like "=C:=C:\dir" for the directory of a drive.
		if name, value, ok := cutEntry(entry); ok {
			s.add(Variable{Name: name, Value: value, Source: Process})
		}
	}
	for _, l := range layers {
		for _, p := range l.pairs {
			s.add(Variable{Name: p.name, Value: p.value, Source: l.source, Path: l.path})
		}
	}
	return s, warnings, nil
}

func cutEntry(entry string) (name, value string, ok bool) {
	if entry == "" {
		return "", "", false
	}
	i := strings.IndexByte(entry[1:], '=')
	if i < 0 {
		return "", "", false
	}
	return entry[:i+1], entry[i+2:], true
}

// layer is one .env file.
type layer struct {
	source Source
	path   string
	ofHome bool
	pairs  []pair
}

func (l *layer) load(read func(string) ([]byte, error)) error {
	data, err := read(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	text := strings.TrimPrefix(string(data), "\uFEFF")
	if strings.IndexByte(text, 0) >= 0 {
		return fmt.Errorf("%s holds zero bytes, which no variable can; save it as UTF-8 text", l.path)
	}
	l.pairs = parseDotenv(strings.ToValidUTF8(text, "\uFFFD"))
	return nil
}

func (l *layer) check(homeFile string) error {
	for _, p := range l.pairs {
		switch {
		case isBootstrap(p.name):
			return &RefusedError{Path: l.path, Name: p.name}
		case isProxy(p.name) && !l.ofHome:
			return &RefusedError{Path: l.path, Name: p.name, AllowedIn: homeFile}
		}
	}
	return nil
}
