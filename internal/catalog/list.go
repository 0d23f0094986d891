package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"dsh/internal/fault"
	"dsh/internal/staging"
)

// Catalog is a catalogue that the user added.
type Catalog struct {
	Name string `yaml:"name"`
	From string `yaml:"from"` // its address, or the absolute path of a file
	SSH  bool   `yaml:"ssh,omitempty"`
}

// Remote reports whether it comes from a server.
func (c Catalog) Remote() bool { return strings.Contains(c.From, "://") }

// Origin is what it may name.
func (c Catalog) Origin() Origin {
	o := Origin{SSH: c.SSH}
	if !c.Remote() {
		o.Dir = filepath.Dir(c.From)
	} else if u, err := url.Parse(c.From); err == nil {
		o.Loopback = isLoopback(u.Hostname())
	}
	return o
}

var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`) })

// New is a catalogue at an address or in a file; relative files are taken from
// dir. A name that is "" is made of the place.
func New(name, from, dir string) (Catalog, error) {
	c := Catalog{Name: name, From: from}
	made := ""
	if c.Remote() {
		u, err := url.Parse(from)
		switch {
		case err != nil || u.Hostname() == "":
			return Catalog{}, fault.Errorf(fault.Other, "the address of a catalogue is not valid")
		case u.User != nil:
			return Catalog{}, fault.WithHint(fault.Errorf(fault.Other, "the address of a catalogue must not have a user or password in it"),
				"put a token for its server into ~/.npmrc: //%s/:_authToken=<token>", u.Host)
		case u.Scheme == "http" && !isLoopback(u.Hostname()):
			return Catalog{}, fault.WithHint(fault.Errorf(fault.Policy, "a catalogue is fetched with encryption only"), "write its address with https")
		case u.Scheme != "https" && u.Scheme != "http":
			return Catalog{}, fault.Errorf(fault.Other, "a catalogue is at an https address or in a file, and not of the kind %q", u.Scheme)
		}
		u.Fragment = ""
		c.From = u.String()
		made = strings.TrimPrefix(u.Hostname(), "www.")
	} else {
		if !filepath.IsAbs(from) {
			c.From = filepath.Join(dir, from)
		}
		made = strings.TrimSuffix(filepath.Base(from), filepath.Ext(from))
	}
	if c.Name == "" {
		c.Name = strings.Trim(regexp.MustCompile(`[^a-z0-9._-]+`).ReplaceAllString(strings.ToLower(made), "-"), "-._")
	}
	if !nameForm().MatchString(c.Name) {
		return Catalog{}, fault.WithHint(fault.Errorf(fault.Other, "%q cannot be the name of a catalogue", c.Name),
			"choose one of small letters, digits, dots, - and _ with --name")
	}
	return c, nil
}

// ReadList reads the catalogues that the user added; there need not be a file.
func ReadList(file string) ([]Catalog, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of catalogues: %w", err)
	}
	var document struct {
		Catalogs []Catalog `yaml:"catalogs"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	decoder.KnownFields(true)
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, wrongList(file, plainYAML(err))
	}
	for i, c := range document.Catalogs {
		whole, err := New(c.Name, c.From, filepath.Dir(file))
		if err == nil && c.From == "" {
			err = errors.New("it has no from")
		}
		if err == nil && slices.ContainsFunc(document.Catalogs[:i], func(other Catalog) bool { return other.Name == whole.Name }) {
			err = errors.New("there are two of the name")
		}
		if err != nil {
			return nil, wrongList(file, fmt.Errorf("catalogue %d: %w", i+1, err))
		}
		document.Catalogs[i].Name, document.Catalogs[i].From = whole.Name, whole.From
	}
	return document.Catalogs, nil
}

var unknownKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`field (\S+) not found in type \S+`) })

// plainYAML is an error of the YAML library in our words, on one line.
func plainYAML(err error) error {
	text := err.Error()
	if several, ok := errors.AsType[*yaml.TypeError](err); ok {
		text = strings.Join(several.Errors, "; ")
	}
	return errors.New(unknownKey().ReplaceAllString(strings.TrimPrefix(text, "yaml: "), "there is no key $1"))
}

func wrongList(file string, err error) error {
	return fault.WithHint(fmt.Errorf("read the list of catalogues: %s: %w", file, err),
		"its form is: catalogs: [{name: NAME, from: ADDRESS OR FILE}]")
}

// WriteList writes them. A file that is not there is made for the user alone, for
// an address can have a secret in its query.
func WriteList(file string, list []Catalog) error {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(map[string]any{"catalogs": append([]Catalog{}, list...)}); err != nil {
		return err
	}
	if err := staging.MkdirAll(filepath.Dir(file)); err != nil {
		return err
	}
	return staging.WriteFile(file, text.Bytes(), 0o600)
}
