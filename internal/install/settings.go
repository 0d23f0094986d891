package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"

	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/workspace"
)

// WorkspaceName is the file of a profile that holds pnpm's settings.
const WorkspaceName = workspace.Name

// Settings are what a profile says of how its packages are chosen and laid out:
// pnpm's settings, as far as they mean something here, and the profile's own.
type Settings struct {
	AutoPeers bool          // peers that nobody provides are installed
	Overrides Overrides     // what packages get in place of what they ask for
	Hosts     HostPolicy    // what becomes of host packages that a plugin depends on
	MinAge    time.Duration // versions published more recently are passed over
	AgeExcept []string      // patterns of the packages to which MinAge does not apply
	Copy      bool          // files are copied out of the store, never linked
}

// ReadSettings reads the settings of the profile in dir from its manifest and
// its pnpm-workspace.yaml. Errors are of class Package.
func ReadSettings(dir string, m *profile.Manifest) (Settings, error) {
	file := filepath.Join(dir, WorkspaceName)
	text, err := profile.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Settings{}, fmt.Errorf("read settings: %w", err)
	}
	root, err := workspace.Root(text)
	if err != nil {
		return Settings{}, fault.Errorf(fault.Package, "read %s: %w", file, err)
	}
	s := Settings{Hosts: WarnHosts}
	r := settingsReader{root: root}
	s.AutoPeers = r.boolean("autoInstallPeers")
	s.MinAge = r.minutes("minimumReleaseAge")
	s.AgeExcept = r.strings("minimumReleaseAgeExclude")
	switch r.scalar("packageImportMethod") {
	case "copy", "clone-or-copy":
		s.Copy = true
	}
	if r.err != nil {
		return Settings{}, fault.Errorf(fault.Package, "%s: %w", file, r.err)
	}
	var fields manifestSettings
	if err := json.Unmarshal(m.Bytes(), &fields); err == nil && fields.DSH.Profile.HostPackages != "" {
		if s.Hosts, err = ParseHostPolicy(fields.DSH.Profile.HostPackages); err != nil {
			return Settings{}, fault.Errorf(fault.Package, "%s: dsh.profile.hostPackages: %w", m.Path(), err)
		}
	}
	if s.Overrides, err = readOverrides(m, root); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// manifestSettings is what a profile's package.json says of packages, apart
// from overrides. What has another type says nothing.
type manifestSettings struct {
	DSH struct {
		Profile struct {
			HostPackages string `json:"hostPackages"`
		} `json:"profile"`
	} `json:"dsh"`
}

// settingsReader takes values out of a pnpm-workspace.yaml and keeps the first
// that is not what it should be.
type settingsReader struct {
	root *yaml.Node
	err  error
}

func (r *settingsReader) value(key string, kind yaml.Kind) *yaml.Node {
	value := workspace.Value(r.root, key)
	if value == nil || value.Tag == "!!null" {
		return nil
	}
	if value.Kind != kind {
		r.wrong(value, key, map[yaml.Kind]string{yaml.ScalarNode: "one value", yaml.SequenceNode: "a list", yaml.MappingNode: "a mapping"}[kind])
		return nil
	}
	return value
}

func (r *settingsReader) wrong(at *yaml.Node, key, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("line %d: %s must be %s", at.Line, key, want)
	}
}

func (r *settingsReader) scalar(key string) string {
	if value := r.value(key, yaml.ScalarNode); value != nil {
		return value.Value
	}
	return ""
}

func (r *settingsReader) boolean(key string) bool {
	value := r.value(key, yaml.ScalarNode)
	if value == nil {
		return false
	}
	if value.Tag != "!!bool" {
		r.wrong(value, key, "true or false")
	}
	return value.Value == "true"
}

func (r *settingsReader) minutes(key string) time.Duration {
	value := r.value(key, yaml.ScalarNode)
	if value == nil {
		return 0
	}
	minutes, err := strconv.ParseUint(value.Value, 10, 31)
	if err != nil {
		r.wrong(value, key, "a number of minutes")
	}
	return time.Duration(minutes) * time.Minute
}

func (r *settingsReader) strings(key string) []string {
	var list []string
	if value := r.value(key, yaml.SequenceNode); value != nil {
		for _, item := range value.Content {
			list = append(list, item.Value)
		}
	}
	return list
}
