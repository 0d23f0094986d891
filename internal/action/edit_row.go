package action

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/patchedit"
)

// Set gives what place names, ROW.KEY or ROW:KEY, a value in a patch file. The
// value is YAML. Where the file says nothing about the row's config yet, the
// composed config is restated with the one change.
func Set(ctx context.Context, env Env, opts EditOptions, place, value string) (*Edit, error) {
	return runEdit(ctx, env, opts, func(e *edit, text []byte) ([]byte, error) {
		r, err := e.row(text, place)
		if err != nil {
			return nil, err
		}
		key, err := r.setting().key()
		if err != nil {
			return nil, err
		}
		v, err := r.setting().value(e.src, value)
		if err != nil {
			return nil, err
		}
		return e.finish(r, key, v, func() ([]byte, error) {
			edited, err := r.set(key, r.target.Path, v)
			if err != nil {
				return nil, err
			}
			if idle, err := r.isIdle(edited, key); idle || err != nil {
				r.copied = nil
				return text, err
			}
			return r.keepTag(edited, key, value, v)
		})
	})
}

// disableRow switches a row off.
func disableRow(e *edit, text []byte, id string) ([]byte, error) {
	r, err := e.switched(text, id)
	if err != nil {
		return nil, err
	}
	if group, _ := r.row.Get("group"); compose.Truthy(group) {
		err := fault.Errorf(fault.Composition, "%s is a group, and a group is never off", r.target.ID)
		if row := firstRowIn(r.tree, r.row); row != "" {
			return nil, fault.WithHint(err, "switch off the rows in it: %s", r.command("disable", row))
		}
		return nil, err
	}
	return r.switchTo(true, func() ([]byte, error) {
		if isOff(r.row) {
			return text, nil
		}
		spot, _ := r.says("disabled")
		if there, _ := at(r.doc, below(spot, "disabled")); isExpr(there) {
			// It is needed again when the row is switched on.
			return r.override("disabled", nil, true)
		}
		return r.set("disabled", nil, true)
	})
}

// enableRow switches a row on: what the file says against it is taken out, and
// only where a layer below switches the row off it says more.
func enableRow(e *edit, text []byte, id string) ([]byte, error) {
	r, err := e.switched(text, id)
	if err != nil {
		return nil, err
	}
	if group, _ := r.row.Get("group"); compose.Truthy(group) {
		e.note("%s is a group, and a group is never off", r.target.ID)
		return e.finish(r, "disabled", nil, func() ([]byte, error) { return text, nil })
	}
	return r.switchTo(false, func() ([]byte, error) {
		without, err := r.withoutKey("disabled", func(v compose.Value) bool { return compose.Truthy(v) && !isExpr(v) })
		if err != nil {
			return nil, err
		}
		below, err := e.rowIn(without, r.target)
		if err != nil {
			return nil, err
		}
		if isOff(below) {
			return r.set("disabled", nil, false)
		}
		if disabled, _ := below.Get("disabled"); !isOff(below) && compose.Truthy(disabled) {
			e.note("whether %s is on is decided at boot by %s; to switch it on whatever that says: %s", r.target.ID,
				compose.AppendFlow(nil, disabled), e.command("set", compose.Target{ID: r.target.ID, RowKey: "disabled"}.String(), "false"))
		}
		return without, nil
	})
}

// switchTo makes an edit that switches the row off or on, and says how that is
// done in the layer that has the last word, if this one does not count.
func (r *rowText) switchTo(off bool, change func() ([]byte, error)) ([]byte, error) {
	edited, err := r.finish(r, "disabled", off, change)
	if err != nil || r.report.Overridden == "" {
		return edited, err
	}
	if now := r.report.Composed; now != nil && !isExpr(now.V) && compose.Truthy(now.V) == off {
		return edited, nil
	}
	if r.winner == compose.HomeLayer || r.winner == compose.ProjectLayer {
		there, verb := *r.edit, "enable"
		if there.opts.Layer = r.winner; off {
			verb = "disable"
		}
		r.note("to %s it there: %s", verb, there.command(verb, compose.Target{ID: r.target.ID}.String()))
	}
	return edited, nil
}

func isExpr(v compose.Value) bool {
	_, ok := v.(compose.Expr)
	return ok
}

// isOff says whether a row is off for certain.
func isOff(row *compose.Map) bool {
	off, expr := compose.Row{Entry: row}.Disabled()
	return off && expr == nil
}

// switched is the row that a command switches.
func (e *edit) switched(text []byte, id string) (*rowText, error) {
	r, err := e.row(text, id)
	if err != nil {
		return nil, err
	}
	if len(r.target.Path) > 0 || r.target.RowKey != "" {
		return nil, fault.WithHint(fault.Errorf(fault.Other, "%s is not a whole row", r.target), "name the row alone: %s", fault.ShellWord(compose.Target{ID: r.target.ID}.String()))
	}
	return r, nil
}

// rowText is what the text of the file says about a row.
type rowText struct {
	*edit
	text    []byte
	doc     *compose.List // the text as it is written
	patches []compose.Patch
	tree    *compose.Tree // up to the file
	target  compose.Target
	row     *compose.Map
	// inserted is where the file inserts the row; nil if a layer below does.
	inserted patchedit.Path
	// overrides are the steps of the file that override the row, in order.
	overrides []*compose.Step
	// copied are the keys of the config that the edit copies from the layers
	// below.
	copied [][]string
}

// row finds the row of a place and what the file says about it.
func (e *edit) row(text []byte, place string) (*rowText, error) {
	r := &rowText{edit: e, text: text}
	var err error
	if r.patches, err = e.parse(text); err != nil {
		return nil, err
	}
	r.doc = &compose.List{}
	if len(r.patches) > 0 {
		v, err := compose.ParseValue(e.src, text)
		if err != nil {
			return nil, err
		}
		r.doc, _ = v.(*compose.List)
	}
	r.tree = e.tree(r.patches, false)
	if r.target, err = e.composed.findTarget(r.tree, place); err != nil {
		return nil, e.notBelow(r, place, err)
	}
	r.row = r.target.Row
	if !inTree(r.tree, r.row) {
		return nil, fault.WithHint(fault.Errorf(fault.Composition, "the row %s is not there any more: the config of its group was replaced", r.target.ID),
			"dsh config explain %s shows by which layer", fault.ShellWord(compose.Target{ID: r.target.ID}.String()))
	}
	r.inserted = r.insertedAt()
	for i := range r.tree.Steps {
		step := &r.tree.Steps[i]
		if step.Layer == e.own() && step.Outcome == compose.Overrode && step.Target == r.row {
			r.overrides = append(r.overrides, step)
		}
	}
	e.report.Target = r.target.String()
	return r, nil
}

// notBelow says of a row that is not there up to the file, and err says so,
// whether a layer above the file has it.
func (e *edit) notBelow(r *rowText, place string, err error) error {
	if _, malformed := errors.AsType[*compose.TargetError](err); malformed {
		return err
	}
	all := e.tree(r.patches, true)
	target, allErr := e.composed.findTarget(all, place)
	if allErr != nil {
		return err
	}
	h := newHistory(all)
	where, ok := h.whereRow(target.Row)
	if !ok {
		return err
	}
	err = fault.Errorf(fault.Composition, "the row %s is inserted later, by the %s layer at %s, so that this file cannot change it", target.ID, where.Kind, where.Place())
	switch where.Kind {
	case compose.HomeLayer.String(), compose.ProjectLayer.String():
		return fault.WithHint(err, "change it there, with --%s", where.Kind)
	}
	return err
}

func inTree(tree *compose.Tree, row *compose.Map) bool {
	for r := range tree.All() {
		if r.Entry == row {
			return true
		}
	}
	return false
}

// rowIn is the row of a target with another text of the file.
func (e *edit) rowIn(text []byte, target compose.Target) (*compose.Map, error) {
	patches, err := e.parse(text)
	if err != nil {
		return nil, err
	}
	return e.tree(patches, false).FindText(target.ID), nil
}

// insertedAt is where in the file the row is inserted, nil if a layer below
// does that. Of several rows with one id patches find the one that was
// inserted last.
func (r *rowText) insertedAt() patchedit.Path {
	id, _ := r.row.Get("id")
	var spot patchedit.Path
	for _, step := range r.tree.Steps {
		if step.Outcome != compose.Inserted {
			continue
		}
		insert, _ := step.Patch.Map.Get("insert")
		w := rowWalk{id: id, seen: map[*compose.List]bool{}}
		if found := w.last(insert, patchedit.Path{strconv.Itoa(step.Patch.Entry), "insert"}); found != nil {
			if spot = nil; step.Layer == r.own() {
				spot = found
			}
		}
	}
	return spot
}

// rowWalk looks for a row among those that a patch inserts.
type rowWalk struct {
	id   compose.Value
	seen map[*compose.List]bool // what aliases show again holds the same rows
}

// last is the path of the last row with the id among inserted rows and the rows
// of groups among them.
func (w rowWalk) last(rows compose.Value, spot patchedit.Path) (found patchedit.Path) {
	list, ok := rows.(*compose.List)
	if !ok || w.seen[list] {
		return nil
	}
	w.seen[list] = true
	for i, item := range list.Items {
		row, ok := item.(*compose.Map)
		if !ok {
			continue
		}
		here := below(spot, strconv.Itoa(i))
		if have, _ := row.Get("id"); have == w.id {
			found = here
		}
		if group, _ := row.Get("group"); compose.Truthy(group) {
			config, _ := row.Get("config")
			if inside := w.last(config, below(here, "config")); inside != nil {
				found = inside
			}
		}
	}
	return found
}

// setting is the writing of a value at the target.
func (r *rowText) setting() setting {
	return setting{
		target: r.target, tree: r.tree, rows: "write the rows into " + r.src.File,
		write: func(place, value string) string { return r.command("set", place, value) },
	}
}

// command is a command line about the file.
func (e *edit) command(verb string, words ...string) string {
	all := []string{"dsh", "config", verb}
	if e.opts.Layer != compose.ProfileLayer {
		all = append(all, "--"+e.opts.Layer.String())
	}
	all = append(all, "--profile", e.opts.Name.String())
	return fault.ShellWords(append(all, words...)...)
}

// says is the mapping in the file that has the last say about a key of the
// row: an override that holds it, or the row as it is inserted; nil where the
// file says nothing. step is the override's.
func (r *rowText) says(key string) (spot patchedit.Path, step *compose.Step) {
	for _, step := range slices.Backward(r.overrides) {
		if _, ok := step.Patch.Map.Get(key); ok {
			return stepPath(step), step
		}
	}
	return r.inserted, nil
}

func stepPath(step *compose.Step) patchedit.Path {
	return patchedit.Path{strconv.Itoa(step.Patch.Entry)}
}

func below(spot patchedit.Path, steps ...string) patchedit.Path {
	return append(slices.Clip(spot), steps...)
}

// set is the text with v at a path in a key of the row.
func (r *rowText) set(key string, path []string, v compose.Value) ([]byte, error) {
	if spot, _ := r.says(key); spot != nil {
		return r.setIn(spot, key, path, v)
	}
	return r.override(key, path, v)
}

// override is the text with a key of the row in an override, where the last one
// of the file does not hold it: the key is restated with v at a path.
func (r *rowText) override(key string, path []string, v compose.Value) ([]byte, error) {
	old, _ := r.row.Get(key)
	changed, copied, err := compose.Restate(old, path, v, false)
	if err != nil {
		return nil, fault.WithClass(fault.Composition, err)
	}
	spot, edited := patchedit.Path{strconv.Itoa(len(r.patches))}, []byte(nil)
	if last := r.lastOverride(); last != nil && !has(last.Patch.Map, key) {
		spot = stepPath(last)
		edited, err = patchedit.Set(r.src, r.text, below(spot, key), changed)
	} else {
		patch := &compose.Map{}
		id, _ := r.row.Get("id")
		patch.Set("id", id)
		patch.Set(key, changed)
		edited, err = patchedit.Append(r.src, r.text, patch)
	}
	if err != nil || len(copied) == 0 {
		return edited, err
	}
	r.copied = copied
	return r.mark(edited, below(spot, key), changed, copied)
}

func (r *rowText) lastOverride() *compose.Step {
	if len(r.overrides) == 0 {
		return nil
	}
	return r.overrides[len(r.overrides)-1]
}

func has(m *compose.Map, key string) bool {
	_, ok := m.Get(key)
	return ok
}

// setIn changes a key in the mapping at a place of the file.
func (r *rowText) setIn(spot patchedit.Path, key string, path []string, v compose.Value) ([]byte, error) {
	place := below(spot, key)
	raw, _ := at(r.doc, place)
	changed, _, err := compose.Restate(raw, path, v, false)
	if err != nil {
		return nil, fault.WithClass(fault.Composition, err)
	}
	edited, err := patchedit.Set(r.src, r.text, place, changed)
	if err != nil || key != "config" {
		return edited, err
	}
	copied := patchedit.CopiedKeys(r.text, place)
	if copied == nil {
		return edited, nil
	}
	return r.mark(edited, place, changed, uncopied(copied, path, raw))
}

// mark writes the note that says which keys of a config are copied.
func (r *rowText) mark(text []byte, spot patchedit.Path, config compose.Value, copied [][]string) ([]byte, error) {
	if _, ok := config.(*compose.Map); !ok {
		return text, nil
	}
	return patchedit.SetCopiedKeys(r.src, text, spot, copied)
}

// uncopied is the copied keys of a config without what stands at path. Of a
// copied value that holds more than that, the rest stays.
func uncopied(copied [][]string, path []string, config compose.Value) [][]string {
	left := [][]string{}
	for _, key := range copied {
		switch {
		case hasPrefix(key, path): // the key, or a part of what is set
		case hasPrefix(path, key):
			whole, _ := at(config, key)
			if _, rest, err := compose.Restate(whole, path[len(key):], nil, false); err == nil {
				for _, beside := range rest {
					left = append(left, append(slices.Clip(key), beside...))
				}
			}
		default:
			left = append(left, key)
		}
	}
	return left
}

func hasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

// keepTag is an edited text with the value as it was typed where that is one
// `!path` scalar, which else would be written as the path of this machine.
func (r *rowText) keepTag(edited []byte, key, typed string, v compose.Value) ([]byte, error) {
	typed = strings.TrimSpace(typed)
	if _, isText := v.(string); !isText || !strings.HasPrefix(typed, "!path ") {
		return edited, nil
	}
	const stand = "dsh-path-stands-here"
	if strings.Contains(string(r.text), stand) {
		return edited, nil
	}
	copied := r.copied
	held, err := r.set(key, r.target.Path, stand)
	if r.copied = copied; err != nil {
		return edited, nil
	}
	tagged := []byte(strings.Replace(string(held), stand, typed, 1))
	want, err := compose.ParseValue(r.src, edited)
	if err != nil {
		return nil, err
	}
	if got, err := compose.ParseValue(r.src, tagged); err != nil || !compose.Equal(got, want) {
		return edited, nil // it cannot stand there as it is typed
	}
	r.note("%s means %s", typed, v)
	return tagged, nil
}

// isIdle says whether an edit leaves what is composed for a key of the row as it
// is, and which keys are copied.
func (r *rowText) isIdle(edited []byte, key string) (bool, error) {
	row, err := r.rowIn(edited, r.target)
	if err != nil {
		return false, err
	}
	before, had := r.row.Get(key)
	after, has := row.Get(key)
	return had == has && compose.Equal(before, after) && !r.unmarks(edited, key), nil
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

// noteCopied says which keys of the row's config were copied. Secrets of the
// user are not copied into a project, which others see.
func (r *rowText) noteCopied(row *compose.Map) error {
	if len(r.copied) == 0 {
		return nil
	}
	config, _ := row.Get("config")
	redacted := compose.RedactAt(config, "config")
	var secrets [][]string
	for _, path := range r.copied {
		r.report.Copied = append(r.report.Copied, compose.PathText(path))
		v, _ := at(config, path)
		shown, _ := at(redacted, path)
		secrets = append(secrets, changedIn(v, shown, path)...)
	}
	from := "the layers below"
	if r.opts.Layer != compose.ProfileLayer {
		from += ", as profile " + r.opts.Name.String() + " has them"
	}
	among := ""
	if len(secrets) > 0 {
		among = ", among them secrets: " + keyList(secrets)
	}
	if len(secrets) > 0 && r.opts.Layer == compose.ProjectLayer {
		return fault.WithHint(
			fault.Errorf(fault.Policy, "an override replaces the whole config, so that secrets of %s would be copied into %s: %s", r.target.ID, r.src.File, keyList(secrets)),
			"change it in a file of your own, without --project, or let the layers below read the secrets from the environment: !!js process.env.NAME")
	}
	r.note("an override replaces the whole config, so these keys were copied from %s: %s%s", from, keyList(r.copied), among)
	return nil
}

// changedIn is the paths at which now, which has the shape of v, is not v.
func changedIn(v, now compose.Value, path []string) (changed [][]string) {
	inside := func(key string, item compose.Value) {
		other, _ := at(now, []string{key})
		changed = append(changed, changedIn(item, other, append(slices.Clip(path), key))...)
	}
	switch v := v.(type) {
	case *compose.Map:
		for key, item := range v.All() {
			inside(key, item)
		}
	case *compose.List:
		for i, item := range v.Items {
			inside(strconv.Itoa(i), item)
		}
	default:
		if !compose.Equal(v, now) {
			return [][]string{path}
		}
	}
	return changed
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

// unmarks says whether an edit changed which keys are copied.
func (r *rowText) unmarks(edited []byte, key string) bool {
	spot, _ := r.says(key)
	if spot == nil || key != "config" {
		return false
	}
	was, is := patchedit.CopiedKeys(r.text, below(spot, key)), patchedit.CopiedKeys(edited, below(spot, key))
	return !slices.EqualFunc(was, is, slices.Equal)
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
