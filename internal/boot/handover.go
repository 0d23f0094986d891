package boot

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dsh/internal/action"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/stack"
	"dsh/internal/staging"
)

// handover is a start of the launcher of an installation, made ready.
type handover struct {
	node    string
	args    []string // the script and what follows it
	environ []string
	name    string   // of the installation, for messages
	files   []string // patches that were written for it
}

// readyHandOver makes everything ready for the launcher of an installation to
// start the profile of a request: the profile is whole, and layers that the
// launcher does not know are patch files that it takes.
func readyHandOver(ctx context.Context, req Request, choice action.Choice, log Log) (*handover, error) {
	node, script, err := choice.Program(req.Env)
	if err != nil {
		return nil, err
	}
	h := &handover{node: node, environ: req.Environ, name: choice.Name}
	warnings, err := action.Ready(ctx, req.Env, req.Layers.Name)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		log.Warn(w)
	}
	state := req.Env.Home.StateDir(req.Env.Home.Real(req.Layers.Name))
	sweepHandOvers(state)
	patches, err := h.patches(ctx, req, state, log)
	if err != nil {
		h.discard()
		return nil, err
	}
	h.args = []string{script, "--profile", req.Layers.Name.String()}
	for _, file := range patches {
		h.args = append(h.args, "--patch", file)
	}
	if len(req.Args) > 0 && strings.HasPrefix(req.Args[0], "-") {
		h.args = append(h.args, "--") // it is the app's, whatever it says
	}
	h.args = append(h.args, req.Args...)
	return h, nil
}

// patches are the patch files of the run, lowest first. Those of --patch are
// given as they are, unless only dsh reads them.
func (h *handover) patches(ctx context.Context, req Request, state string, log Log) ([]string, error) {
	var files []string
	plain := map[string]bool{} // by label
	all := len(req.Layers.Sets) == 0
	for _, o := range req.Layers.Patches {
		plain[o.Label] = isPlain(o)
		all = all && plain[o.Label]
		files = append(files, o.Label)
	}
	project, err := action.HasProject(req.Env)
	if err != nil {
		return nil, err
	}
	if all && !project {
		return files, nil
	}
	composed, err := action.Compose(ctx, req.Env, action.ComposeOptions{Layers: req.Layers})
	if err != nil {
		return nil, err
	}
	for _, w := range composed.Warnings {
		log.Warn(w)
	}
	files = nil
	for i, layer := range composed.Stack.Layers {
		if layer.Kind < compose.ProjectLayer {
			continue
		}
		if layer.Kind == compose.PatchLayer && plain[layer.Label] {
			files = append(files, layer.Label)
			continue
		}
		text, skipped := restated(composed, i)
		for _, s := range skipped {
			log.Notice(compose.Warning{Layer: layer.Label, Text: s}.String())
		}
		if text == nil {
			continue
		}
		file := filepath.Join(state, fmt.Sprintf("%s%d-%s-%d.yml", handOverPrefix, os.Getpid(), strconv.FormatInt(time.Now().UnixNano(), 36), i))
		if err := staging.MkdirAll(state); err != nil {
			return nil, fault.WithClass(fault.Environment, err)
		}
		if err := staging.WriteFile(file, text, 0o600); err != nil {
			return nil, fault.WithClass(fault.Environment, fmt.Errorf("handing the layer %s over: %w", layer.Label, err))
		}
		h.files = append(h.files, file)
		files = append(files, file)
	}
	return files, nil
}

// isPlain says whether the launcher can read the patches of a --patch itself: a
// file, in the language that both know. A pipe is read once, by whom it is for.
func isPlain(o stack.Overlay) bool {
	if o.Text != nil {
		return false
	}
	info, err := os.Stat(o.Label)
	if err != nil {
		return true // the launcher says what is wrong with it
	}
	if !info.Mode().IsRegular() {
		return false
	}
	text, err := os.ReadFile(o.Label)
	return err != nil || !bytes.Contains(text, []byte("!path"))
}

// restated is the patches of a layer with what they mean written out, so that
// they mean the same in another file and to a launcher that knows no !path; nil
// where none of them does anything. skipped is why others do nothing.
func restated(composed *action.Composed, layer int) (text []byte, skipped []string) {
	layers := composed.Stack.Layers
	entries := &compose.List{}
	for i := range layers[layer].Patches {
		part := layers[layer]
		part.Patches = part.Patches[:i+1]
		tree := compose.Apply(append(layers[:layer:layer], part), composed.Rules)
		step := tree.Steps[len(tree.Steps)-1]
		entry := &compose.Map{}
		switch {
		case !step.Outcome.Applied():
			skipped = append(skipped, step.Skipped)
			continue
		case step.Outcome == compose.Inserted:
			for key, value := range step.Patch.Map.All() {
				if key == "insert" {
					value = &compose.List{Items: step.Rows}
				}
				entry.Set(key, value)
			}
		default:
			id, _ := step.Patch.Map.Get("id")
			entry.Set("id", id)
			for _, change := range step.Changes {
				entry.Set(change.Key, change.New)
			}
		}
		entries.Items = append(entries.Items, entry)
	}
	if len(entries.Items) == 0 {
		return nil, skipped
	}
	return append(compose.AppendYAML(nil, entries, 0), '\n'), skipped
}

// handOverPrefix begins the names of the files in a profile's state that were
// written for a launcher; the number of its process follows.
const handOverPrefix = "handover-"

// sweepHandOvers removes what was written for launchers that have ended. What
// cannot be removed does no harm.
func sweepHandOvers(state string) {
	files, err := filepath.Glob(filepath.Join(state, handOverPrefix+"*.yml"))
	if err != nil {
		return
	}
	for _, file := range files {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(file), handOverPrefix), "-")
		pid, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		running := isRunning(pid)
		if info, err := os.Stat(file); pid == os.Getpid() && err == nil {
			// An earlier process had our number, or one of another container has.
			running = time.Since(info.ModTime()) < time.Minute
		}
		if !running {
			_ = staging.RemoveAll(file)
		}
	}
}

// discard removes what was written, where the launcher does not start or has
// ended.
func (h *handover) discard() {
	for _, file := range h.files {
		_ = staging.RemoveAll(file) // the next start tries again
	}
}

// failed says why the launcher did not start.
func (h *handover) failed(err error) error {
	h.discard()
	return fault.WithHint(fault.Errorf(fault.MissingProgram, "starting %s: %w", h.node, err), "%s", fault.ShellWords("dsh", "installation", "check", h.name))
}
