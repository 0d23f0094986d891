// Package hmr is the plugin that follows the files of the profile while it
// runs: the bundle list and the patch files of the profile and of the home.
//
// It does not reload anything: live does, which boot gives it as a slot.
package hmr

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/boot/live"
	"dsh/internal/boot/slot"
	"dsh/internal/profile"
)

// Name is what rows call the plugin.
const Name = "@deepseek-ai/dsh-hmr"

// Config is the config of a row.
type Config struct {
	// Base, Root and Ignored are for the sources of JavaScript plugins, which
	// this host does not run. They are accepted and do nothing.
	Base    string   `json:"base"`
	Root    []string `json:"root"`
	Ignored []string `json:"ignored"`
	// Debounce is how long nothing has to happen before a reload, in milliseconds.
	Debounce *int `json:"debounce"`
}

// debounce is what Config.Debounce is when it is absent, in milliseconds.
const debounce = 50

// Plugin follows the files while a row of it runs.
var Plugin = host.Plugin{
	Inject:   []host.Need{{Service: slot.Profile}, {Service: slot.Reloads}},
	Provides: []string{slot.Live},
	Start:    start,
}

func start(ctx context.Context, r *host.Row) error {
	var config Config
	if err := r.Decode(&config); err != nil {
		return err
	}
	layers, ok := host.Service[*live.Layers](r, slot.Reloads)
	if !ok {
		return errors.New("there is nothing that reloads the profile")
	}
	p, ok := host.Service[*slot.ProfileContext](r, slot.Profile)
	if !ok {
		return errors.New("there is no profile to follow")
	}
	r.Provide(slot.Live, slot.LiveLayers(layers))
	if len(config.Root) > 0 {
		r.Logf("the sources in %s are not followed: this host runs no JavaScript", strings.Join(config.Root, ", "))
	}
	manifest := filepath.Join(p.Dir, "package.json")
	if startOnly(manifest) {
		r.Logf("the profile says patchReload: startup; its files are not followed")
		return nil
	}
	quiet := debounce
	if config.Debounce != nil {
		quiet = *config.Debounce
	}
	stop, err := live.Watch([]live.File{
		{Path: manifest, Part: bundles},
		{Path: p.PatchPath},
		{Path: filepath.Join(p.HomeDir, "cordis.patch.yml")},
	}, time.Duration(quiet)*time.Millisecond, layers.Changed, func(err error) { r.Logf("not all changes of the profile are seen: %v", err) })
	if err != nil {
		return fmt.Errorf("follow the files of the profile: %w", err)
	}
	r.OnStop(func(context.Context) error { stop(); return nil })
	cancel := layers.Subscribe(func(reload slot.Reload) {
		switch {
		case reload.Err != nil:
			r.Logf("the files do not apply, what runs stays as it is: %v", reload.Err)
		case len(reload.Changed) > 0:
			r.Logf("applied the change of %s", strings.Join(reload.Changed, ", "))
		}
	})
	r.OnStop(func(context.Context) error { cancel(); return nil })
	// What changed between the composing of the start and the watch is seen now.
	layers.Changed()
	return nil
}

// startOnly says whether the manifest wants the files to count at the start
// alone.
func startOnly(path string) bool {
	text, err := profile.ReadFile(path)
	if err != nil {
		return false
	}
	m, err := profile.ParseManifest(path, text)
	return err == nil && m.PatchReload() == profile.ReloadStartup
}

// bundles is what counts of a manifest: the list of bundles. All of a text that
// cannot be read counts, so that its mistake is told.
func bundles(text []byte) []byte {
	m, err := profile.ParseManifest("package.json", text)
	if err != nil {
		return text
	}
	return []byte(strings.Join(m.Bundles(), "\n"))
}
