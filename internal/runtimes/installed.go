package runtimes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"dsh/internal/fault"
	"dsh/internal/profile"
)

// RecordName is the file by which a directory is an installation of the home.
const RecordName = "installation.json"

// Record says what an installation is made of.
type Record struct {
	Launcher string `json:"launcher"` // version
	// Directory is where another tool installed the launcher; "" where dsh did.
	Directory string `json:"directory,omitempty"`
	Tested    bool   `json:"tested"` // from a lockfile that dsh ships
	Node      Node   `json:"node"`
}

// Node is the Node.js that runs an installation.
type Node struct {
	// Program is its path: absolute, or slash-separated in the installation.
	Program string `json:"program"`
	Version string `json:"version"`
	// Package and Integrity are of the registry's package that it came in, "" of a
	// program that was there.
	Package   string `json:"package"`
	Integrity string `json:"integrity"`
}

// Installed is an installation of the home.
type Installed struct {
	Name Name
	Dir  string // its directory in the home
	Record
}

// Root is the directory with the launcher's node_modules.
func (i *Installed) Root() string {
	if i.Directory != "" {
		return i.Directory
	}
	return i.Dir
}

// NodeProgram is the path of the Node.js that runs it.
func (i *Installed) NodeProgram() string {
	program := filepath.FromSlash(i.Node.Program)
	if filepath.IsAbs(program) {
		return program
	}
	return filepath.Join(i.Dir, program)
}

// Dir holds the installations of a home.
func Dir(home profile.Home) string { return home.Path("installations") }

// DirOf is the directory of an installation.
func DirOf(home profile.Home, name Name) string { return filepath.Join(Dir(home), name.text) }

// Read reads an installation of the home. One that is not there is
// fs.ErrNotExist.
func Read(home profile.Home, name Name) (*Installed, error) {
	i, err := ReadIn(DirOf(home, name))
	if err != nil {
		return nil, fmt.Errorf("reading the installation %s: %w", name, err)
	}
	i.Name = name
	return i, nil
}

// ReadIn reads an installation by its directory, as Read does by its name.
func ReadIn(dir string) (*Installed, error) {
	i := &Installed{Dir: dir}
	file := filepath.Join(i.Dir, RecordName)
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err = json.Unmarshal(text, &i.Record); err == nil && (i.Launcher == "" || i.Node.Program == "") {
		err = errors.New("it does not say what is installed")
	}
	if err != nil {
		return nil, fault.WithClass(fault.Environment, fmt.Errorf("%s: %w", file, err))
	}
	return i, nil
}

// List is the installations of a home by name, and the errors of those that
// cannot be read.
func List(home profile.Home) (list []*Installed, broken []error, err error) {
	entries, err := os.ReadDir(Dir(home))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("looking for installations: %w", err)
	}
	for _, e := range entries {
		name, err := ParseName(e.Name())
		if err != nil {
			continue
		}
		i, err := Read(home, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			broken = append(broken, err)
		default:
			list = append(list, i)
		}
	}
	return list, broken, nil
}
