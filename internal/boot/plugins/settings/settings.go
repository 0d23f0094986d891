// Package settings is what the user chose at run time: one document, which
// other rows read by key and whose changes they hear of.
//
// It does not write the document, and it does not know what settings mean.
package settings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/boot/live"
	"dsh/internal/boot/slot"
	"dsh/internal/compose"
	"dsh/internal/fault"
)

// Service is the name under which the *Settings are provided.
const Service = "settings"

// Name is the plugin's.
const Name = "@deepseek-ai/dsh-settings-file"

// Config is the configuration of the row.
type Config struct {
	Path       string `json:"path"`    // absolute; "" is settings.yaml in the home
	DshHome    string `json:"dshHome"` // another home to find it in
	Watch      *bool  `json:"watch"`   // nil is true
	DebounceMs *int   `json:"debounceMs"`
}

// File is the document that the configuration means.
func (c Config) File(home slot.HomePathFunc, name string) string {
	switch {
	case c.Path != "":
		return c.Path
	case c.DshHome != "":
		return filepath.Join(c.DshHome, name)
	default:
		return home(name)
	}
}

// Follow calls changed after each change of a file until the row stops, if the
// configuration wants it. Where the system cannot tell of changes, that is
// logged and all else goes on.
func (c Config) Follow(r *host.Row, path string, changed func()) {
	if c.Watch != nil && !*c.Watch {
		return
	}
	settle := 100 * time.Millisecond
	if c.DebounceMs != nil {
		settle = time.Duration(*c.DebounceMs) * time.Millisecond
	}
	unfollowed := func(err error) { r.Logf("changes of %s are not followed: %v", path, err) }
	stop, err := live.Watch([]live.File{{Path: path}}, settle, changed, unfollowed)
	if err != nil {
		unfollowed(err)
		return
	}
	r.OnStop(func(context.Context) error { stop(); return nil })
}

// Plugin provides the settings and follows their document. At the start a
// document that cannot be read fails the row: what the user chose is not
// passed over. Later it is told, and the values stay as they were.
var Plugin = host.Plugin{
	Inject:   []host.Need{{Service: slot.HomePath}},
	Provides: []string{Service},
	Start: func(_ context.Context, r *host.Row) error {
		var config Config
		if err := r.Decode(&config); err != nil {
			return err
		}
		home, _ := host.Service[slot.HomePathFunc](r, slot.HomePath)
		path := config.File(home, "settings.yaml")
		s := &Settings{path: path}
		// Following comes first, so that no change is between it and reading.
		config.Follow(r, path, func() {
			if err := s.reload(); err != nil {
				r.Logf("the settings stay as they were: %v", err)
			} else {
				r.Logf("read %s again", path)
			}
		})
		if err := s.reload(); err != nil {
			return err
		}
		r.Provide(Service, s)
		return nil
	},
}

// Settings are the values of one document.
type Settings struct {
	path string

	mu       sync.Mutex
	values   *compose.Map // never changed once it is here
	problem  error
	watchers slot.Listeners[*compose.Map]
	// telling is held while watchers are called, so that they hear of changes in
	// their order.
	telling sync.Mutex
}

// Path is the document.
func (s *Settings) Path() string { return s.path }

// All are the values. They are not to be changed.
func (s *Settings) All() *compose.Map {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values
}

// Get is the value that a chain of keys leads to.
func (s *Settings) Get(keys ...string) (compose.Value, bool) {
	var value compose.Value = s.All()
	for _, key := range keys {
		m, ok := value.(*compose.Map)
		if !ok {
			return nil, false
		}
		if value, ok = m.Get(key); !ok {
			return nil, false
		}
	}
	return value, true
}

// Problem is why the document as it is now is not what All returns, nil if it is.
func (s *Settings) Problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}

// Watch calls f with the values after each change of them, one call at a
// time, until cancel is called. f may not wait for a change.
func (s *Settings) Watch(f func(*compose.Map)) (cancel func()) {
	return s.watchers.Add(f)
}

// Expression is what expressions see.
func (s *Settings) Expression() any { return s.All() }

// reload reads the document again. With an error the values stay.
func (s *Settings) reload() error {
	values, err := read(s.path)
	s.telling.Lock()
	defer s.telling.Unlock()
	s.mu.Lock()
	s.problem = err
	if err != nil || s.values != nil && compose.Equal(values, s.values) {
		s.mu.Unlock()
		return err
	}
	s.values = values
	s.mu.Unlock()
	s.watchers.Tell(values)
	return nil
}

// maxSize is how large a document may be, in bytes.
const maxSize = 4 << 20

// read is the mapping in a file, empty if there is no file.
func read(path string) (*compose.Map, error) {
	text, err := ReadSmall(path, maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return new(compose.Map), nil
	}
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(filepath.Ext(path), ".json") {
		return parseJSON(path, text)
	}
	return parseYAML(path, text)
}

// ReadSmall reads a regular file that is no larger than size bytes.
func ReadSmall(path string, size int64) ([]byte, error) {
	// A pipe would not be opened before somebody writes to it.
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, cause(err))
	} else if !info.Mode().IsRegular() {
		return nil, fault.Errorf(fault.Environment, "read %s: it is no regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, cause(err))
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, size+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, cause(err))
	}
	if int64(len(text)) > size {
		return nil, fault.Errorf(fault.Environment, "read %s: it is larger than %d bytes", path, size)
	}
	return text, nil
}

// cause is an error of the file system without the path, which is told once.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// parseYAML reads the dialect of layers, but no expressions: nobody evaluates
// them here.
func parseYAML(path string, text []byte) (*compose.Map, error) {
	if IsEmpty(text) {
		return new(compose.Map), nil
	}
	value, err := compose.ParseValue(compose.Source{File: path, Dir: filepath.Dir(path)}, text)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return new(compose.Map), nil
	}
	m, ok := value.(*compose.Map)
	if !ok {
		return nil, fault.Errorf(fault.Composition, "%s: settings are a mapping of names to values", path)
	}
	if compose.Endless(m) {
		return nil, fault.Errorf(fault.Composition, "%s: a value contains itself", path)
	}
	if key, found := expression(m); found {
		return nil, fault.Errorf(fault.Composition, "%s: %s is an expression (!!js); settings hold values alone", path, key)
	}
	return m, nil
}

// IsEmpty says whether a text of YAML holds nothing but comments.
func IsEmpty(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// expression is the path to the first expression in a value.
func expression(v compose.Value) (at string, found bool) {
	switch v := v.(type) {
	case compose.Expr:
		return "", true
	case *compose.Map:
		for key, value := range v.All() {
			if rest, found := expression(value); found {
				return strings.TrimSuffix(key+"."+rest, "."), true
			}
		}
	case *compose.List:
		for i, item := range v.Items {
			if rest, found := expression(item); found {
				return strings.TrimSuffix(fmt.Sprintf("%d.%s", i, rest), "."), true
			}
		}
	}
	return "", false
}

// parseJSON reads a document in JSON, its keys in their order.
func parseJSON(path string, text []byte) (*compose.Map, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if len(bytes.TrimSpace(text)) == 0 {
		return new(compose.Map), nil
	}
	// The decoder of tokens takes some texts for JSON that are none.
	var any json.RawMessage
	if err := json.Unmarshal(text, &any); err != nil {
		line := 1
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			line += bytes.Count(text[:min(int(e.Offset), len(text))], []byte("\n"))
		}
		return nil, fault.Errorf(fault.Composition, "%s:%d: %w", path, line, err)
	}
	value, err := jsonValue(json.NewDecoder(bytes.NewReader(text)))
	if err != nil {
		return nil, fault.Errorf(fault.Composition, "%s: %w", path, err)
	}
	m, ok := value.(*compose.Map)
	if !ok {
		return nil, fault.Errorf(fault.Composition, "%s: settings are an object", path)
	}
	return m, nil
}

func jsonValue(decoder *json.Decoder) (compose.Value, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		m := new(compose.Map)
		for decoder.More() {
			key, err := decoder.Token()
			if err != nil {
				return nil, err
			}
			value, err := jsonValue(decoder)
			if err != nil {
				return nil, err
			}
			m.Set(key.(string), value)
		}
		_, err := decoder.Token()
		return m, err
	case json.Delim('['):
		list := new(compose.List)
		for decoder.More() {
			value, err := jsonValue(decoder)
			if err != nil {
				return nil, err
			}
			list.Items = append(list.Items, value)
		}
		_, err := decoder.Token()
		return list, err
	}
	return token, nil // nil, bool, float64 or string
}
