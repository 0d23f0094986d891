package action

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/fault"
)

// command is a command line about the file.
func (e *edit) command(verb string, words ...string) string {
	all := []string{"dsh", "config", verb}
	if e.opts.Layer != compose.ProfileLayer {
		all = append(all, "--"+e.opts.Layer.String())
	}
	all = append(all, "--profile", e.opts.Name.String())
	return fault.ShellWords(append(all, words...)...)
}

// finish makes an edit of a key of the row and says what it does. v is what the
// key is given, nil where it is taken out.
func (e *edit) finish(r *rowText, key string, v compose.Value, change func() ([]byte, error)) ([]byte, error) {
	path := r.target.Path
	edited, err := change()
	if err != nil {
		return nil, err
	}
	patches, err := e.parse(edited)
	if err != nil {
		return nil, err
	}
	all := e.tree(patches, true)
	own := e.tree(patches, false)
	row := own.FindText(r.target.ID)
	e.report.Before, e.report.After = e.shownAt(r.row, key, path), e.shownAt(row, key, path)
	e.report.Line = e.lineOf(own, row, key, path)
	if err := r.noteCopied(row); err != nil {
		return nil, err
	}
	if now, ok := at(row, append([]string{key}, path...)); ok {
		e.meant(v, now)
	}
	if unfit, suggested := e.warnOfAdded(r.tree, own); unfit {
		r.suggestKey(key, suggested)
	}
	if row := all.FindText(r.target.ID); row != nil && (v != nil || !bytes.Equal(edited, r.text)) {
		e.report.Composed = e.shownAt(row, key, path)
		e.overridden(all, row, r.target, key)
	}
	if v != nil && bytes.Equal(edited, r.text) {
		e.noteWriter(own, row, key, path)
	}
	return edited, nil
}

// noteWriter says which layer below the file has given a key its value.
func (e *edit) noteWriter(tree *compose.Tree, row *compose.Map, key string, path []string) {
	h := newHistory(tree)
	for _, w := range slices.Backward(h.writes(row)) {
		if w.key != key {
			continue
		}
		if where := h.where(w.step, append(slices.Clip(w.path), path...)...); tree.Steps[w.step].Layer != e.own() {
			e.note("the %s layer says so, at %s", where.Kind, where.Place())
		}
		return
	}
}

// shownAt is what is at a path in a key of the row as it may be shown, nil where
// nothing is. What stands beside it may say that it is secret.
func (e *edit) shownAt(row *compose.Map, key string, path []string) *Shown {
	whole, _ := row.Get(key)
	keys := append([]string{key}, path...)
	v, ok := at(row, keys)
	if !ok {
		return nil
	}
	if v, ok := at(e.shown.value(whole, key), path); ok {
		return &Shown{v}
	}
	return &Shown{e.shown.value(v, keys...)}
}

// warnOfAdded warns of what an edit makes wrong in the file, and reports whether
// a config no longer fits its plugin, and whether it says what was meant.
func (e *edit) warnOfAdded(before, after *compose.Tree) (unfit, suggested bool) {
	opts := check.Options{Profile: e.opts.Name.String(), Schema: knownSchemas(e.env), Rules: e.rules, ShowSecrets: e.opts.ShowSecrets}
	blocking, other := addedProblems(check.Tree(before, opts), check.Tree(after, opts))
	for _, f := range slices.Concat(blocking, other) {
		if f.File == e.src.File && f.Severity > check.Info {
			e.warn("%s", warningOf(f))
			unfit = unfit || f.Code == check.ConfigInvalid
			suggested = suggested || strings.Contains(f.Message+f.Remedy, "did you mean")
		}
	}
	return unfit, suggested
}

// suggestKey says how a key that does not fit is taken back, and unless that is
// said already, which key that is there may have been meant.
func (r *rowText) suggestKey(key string, suggested bool) {
	path := append([]string{key}, r.target.Path...)
	last := len(path) - 1
	holder, _ := at(r.row, path[:last])
	keys, ok := holder.(*compose.Map)
	if !ok || last == 0 || has(keys, path[last]) {
		return
	}
	back := r.command("unset", r.target.String())
	if suggested {
		r.note("to take this back: %s", back)
		return
	}
	var names []string
	for name := range keys.All() {
		names = append(names, name)
	}
	if meant := compose.Closest(path[last], names); meant != "" {
		target := r.target
		target.Path = append(slices.Clone(target.Path[:len(target.Path)-1]), meant)
		r.note("did you mean %s? to take this back: %s", target, back)
	}
}

// lineOf is where in the file the value at a path in a key of the row stands, 0
// where the file says nothing about the key.
func (e *edit) lineOf(tree *compose.Tree, row *compose.Map, key string, path []string) int {
	h := newHistory(tree)
	for _, w := range slices.Backward(h.writes(row)) {
		if w.key == key && tree.Steps[w.step].Layer == e.own() {
			return h.where(w.step, append(slices.Clip(w.path), path...)...).Line
		}
	}
	return 0
}

// meant says what relative paths in a value are, now that they are absolute.
func (e *edit) meant(written, composed compose.Value) {
	switch written := written.(type) {
	case string:
		if is, ok := composed.(string); ok && is != written {
			e.note("%s means %s", written, is)
		}
	case *compose.Map:
		for key, v := range written.All() {
			if is, ok := at(composed, []string{key}); ok {
				e.meant(v, is)
			}
		}
	case *compose.List:
		for i, v := range written.Items {
			if is, ok := at(composed, []string{strconv.Itoa(i)}); ok {
				e.meant(v, is)
			}
		}
	}
}

// overridden says which layer above the file has the last word about a key of
// a row.
func (e *edit) overridden(all *compose.Tree, row *compose.Map, target compose.Target, key string) {
	h := newHistory(all)
	for i, step := range slices.Backward(all.Steps) {
		if step.Layer <= e.own() || step.Target != row || step.Outcome != compose.Overrode {
			continue
		}
		v, ok := step.Patch.Map.Get(key)
		if !ok {
			continue
		}
		where := h.where(i, append([]string{key}, target.Path...)...)
		what := "sets it too and wins"
		if _, has := at(v, target.Path); !has {
			what = "replaces the whole config without it and wins"
		}
		e.report.Overridden = fmt.Sprintf("the %s layer, %s:%d, %s", where.Kind, where.File, where.Line, what)
		e.winner = all.Layers[step.Layer].Kind
		return
	}
}
