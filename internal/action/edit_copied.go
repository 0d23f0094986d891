package action

import (
	"slices"
	"strconv"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/patchedit"
)

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

// unmarks says whether an edit changed which keys are copied.
func (r *rowText) unmarks(edited []byte, key string) bool {
	spot, _ := r.says(key)
	if spot == nil || key != "config" {
		return false
	}
	was, is := patchedit.CopiedKeys(r.text, below(spot, key)), patchedit.CopiedKeys(edited, below(spot, key))
	return !slices.EqualFunc(was, is, slices.Equal)
}

// isEmpty says whether v is a mapping or a list that holds nothing.
func isEmpty(v compose.Value) bool {
	switch v := v.(type) {
	case *compose.Map:
		return v.Len() == 0
	case *compose.List:
		return len(v.Items) == 0
	default:
		return false
	}
}

// unmoved is the copied keys but for the items of a list that moved because the
// one at path is gone: what the layers below have there is something else.
func unmoved(copied [][]string, config compose.Value, path []string) [][]string {
	list, gone := path[:len(path)-1], path[len(path)-1]
	if v, _ := at(config, list); !isList(v) {
		return copied
	}
	first, _ := strconv.Atoi(gone) // it was found, so it is an index
	return slices.DeleteFunc(copied, func(key []string) bool {
		if len(key) <= len(list) || !hasPrefix(key, list) {
			return false
		}
		i, err := strconv.Atoi(key[len(list)])
		return err != nil || i >= first
	})
}

// allCopied says whether everything in a config, or in the part of it at a path,
// is copied. lower is what the layers below have there: what is empty holds
// nothing that could be marked.
func allCopied(v, lower compose.Value, path []string, copied [][]string) bool {
	if slices.ContainsFunc(copied, func(key []string) bool { return hasPrefix(path, key) }) {
		return true
	}
	if isEmpty(v) {
		return compose.Equal(v, lower)
	}
	inside := func(key string, item compose.Value) bool {
		below, _ := at(lower, []string{key})
		return allCopied(item, below, append(slices.Clip(path), key), copied)
	}
	switch v := v.(type) {
	case *compose.Map:
		for key, item := range v.All() {
			if !inside(key, item) {
				return false
			}
		}
		return true
	case *compose.List:
		for i, item := range v.Items {
			if !inside(strconv.Itoa(i), item) {
				return false
			}
		}
		return true
	default:
		return false
	}
}
