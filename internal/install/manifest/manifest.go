package manifest

import (
	"bytes"
	"encoding/json"
	"errors"

	"dsh/internal/install/manifest/jsonscan"
)

// MaxSize is how many bytes of a package.json are read; no real one comes near.
const MaxSize = 16 << 20

// Manifest is what a package.json says. Keys count in their exact spelling. No
// list holds an empty string, and what is empty is nil.
type Manifest struct {
	Name    string
	Version string

	Dependencies         map[string]string
	OptionalDependencies map[string]string
	PeerDependencies     map[string]string
	OptionalPeers        []string // peers that peerDependenciesMeta calls optional, sorted
	BundleDependencies   []string // dependencies that the archive brings along, sorted

	Engines map[string]string
	OS      []string // as in npm: "linux", "!win32"
	CPU     []string
	Libc    []string

	Bin map[string]string // files by program name, each as [Program] cleans them

	// Layer reports that it declares a layer, well or badly: a bad declaration
	// counts as well, so that adding the package can say what is wrong.
	Layer bool

	// Scripts are those of its scripts that an installation may run, in the
	// order in which they run: preinstall, install, postinstall, prepare.
	Scripts []string
}

// ErrNoObject says that a document is JSON, and no object.
var ErrNoObject = errors.New("it must hold a JSON object")

// Parse reads a package.json, with or without a byte order mark. The error is
// a *json.SyntaxError, whose offset counts from behind the mark, or ErrNoObject.
func Parse(text []byte) (*Manifest, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if !json.Valid(text) {
		var value any
		return nil, json.Unmarshal(text, &value)
	}
	c := jsonscan.New(string(text))
	if c.Peek() != '{' {
		return nil, ErrNoObject
	}
	var name string
	var members Members
	c.Members(func(key string) {
		if key == "name" {
			name = c.Text()
		} else if member, ok := MemberOf(key); ok {
			members[member] = c.Raw()
		}
	})
	if err := c.End(); err != nil {
		return nil, err
	}
	return members.Manifest(name)
}

// Identity is the name and the version that a package.json has, as [Parse] reads
// them, each "" where there is none. It reads nothing else, and much faster.
func Identity(text []byte) (name, version string) {
	c := jsonscan.New(string(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	if c.Peek() != '{' {
		return "", ""
	}
	c.Members(func(key string) {
		switch key {
		case "name":
			name = c.Text()
		case "version":
			version = c.Text()
		}
	})
	if c.End() != nil {
		return "", ""
	}
	return name, version
}
