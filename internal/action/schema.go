package action

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"dsh/bundles"
	"dsh/internal/compose"
	"dsh/internal/installation"
	"dsh/internal/mcp"
)

// Schema describes the patch files of a composed profile: what the plugins
// that are compiled into this program take, and any config for the others.
func Schema(env Env, composed *Composed) (compose.Schema, error) {
	find, err := pluginSchemas(env.Installation)
	if err != nil {
		return compose.Schema{}, err
	}
	var skipped []string
	for _, s := range composed.Stack.Skipped() {
		skipped = append(skipped, s.String())
	}
	return composed.Tree.Schema(composed.Profile.Name.String(), find, skipped), nil
}

// pathRules is where paths stand in the configs of the plugins whose schemas
// are known.
func pathRules(inst installation.Installation) compose.PathRules {
	if _, harness := inst.Version(); harness {
		return nil
	}
	known := map[string]*compose.PathRule{}
	return func(plugin string) *compose.PathRule {
		rule, ok := known[plugin]
		if !ok {
			// Most schemas have no paths, and reading one takes its time.
			if schema, _ := bundles.Schema(plugin); bytes.Contains(schema, []byte(`"path"`)) {
				rule, _ = compose.NewPathRule(schema) // a test reads all of them
			}
			known[plugin] = rule
		}
		return rule
	}
}

// pluginSchemas is what is known of plugins without running them. The plugins
// of a directory installation are JavaScript, also where they have the names
// of ours.
func pluginSchemas(inst installation.Installation) (compose.PluginSchema, error) {
	if _, harness := inst.Version(); harness {
		return func(string) (json.RawMessage, bool) { return nil, false }, nil
	}
	inBox, err := inBoxPlugins()
	if err != nil {
		return nil, err
	}
	return func(plugin string) (json.RawMessage, bool) {
		schema, ok := bundles.Schema(plugin)
		return schema, ok || slices.Contains(inBox, plugin)
	}, nil
}

// inBoxPlugins are the plugins that dsh has built in: those of the rows of the
// in-box bundles, and the client of MCP servers, of which no bundle has a row.
var inBoxPlugins = sync.OnceValues(func() ([]string, error) {
	var layers []compose.Layer
	for _, bundle := range bundles.Names() {
		files, folder, _ := bundles.Open(bundle)
		text, err := fs.ReadFile(files, patchFile)
		if err != nil {
			return nil, fmt.Errorf("reading in-box bundle %s: %w", bundle, err)
		}
		patches, err := compose.ParsePatches(compose.Source{File: folder + "/" + patchFile}, text)
		if err != nil {
			return nil, err
		}
		layers = append(layers, compose.Layer{Label: bundle, Patches: patches})
	}
	names := []string{mcp.PluginName}
	for row := range compose.Apply(layers, nil).All() {
		names = append(names, row.Name())
	}
	return names, nil
})

// patchFile is where every in-box bundle has its layer.
const patchFile = "cordis.patch.yml"
