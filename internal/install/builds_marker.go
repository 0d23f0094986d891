package install

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"dsh/internal/install/store"
)

// builtName is the file in node_modules that says which packages stand there as
// their scripts made them. It is written with the tree, as the tree's marker is.
const builtName = ".dsh-builds"

const builtHeader = "# packages of node_modules as their scripts made them\n"

// formatBuilt is the text of the file: each place with the id of its content in
// the store.
func formatBuilt(built map[string]store.Integrity) []byte {
	if len(built) == 0 {
		return nil
	}
	out := []byte(builtHeader)
	for _, at := range sortedKeys(built) {
		out = append(out, built[at].String()+" "+at+"\n"...)
	}
	return out
}

// parseBuilt reads what [formatBuilt] made. What does not read is as if nothing
// was built, so that it is laid out anew.
func parseBuilt(text []byte) map[string]store.Integrity {
	body, ok := bytes.CutPrefix(text, []byte(builtHeader))
	if !ok {
		return nil
	}
	built := map[string]store.Integrity{}
	for line := range strings.Lines(string(body)) {
		sum, at, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		id, err := store.ParseIntegrity(sum)
		if !ok || err != nil || !strings.HasSuffix(line, "\n") {
			return nil
		}
		built[at] = id
	}
	return built
}

// readBuilt is what stands built in the node_modules of a profile's directory.
func readBuilt(dir string) (map[string]store.Integrity, error) {
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", builtName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return parseBuilt(text), err
}

// BuiltIn is the contents that the store holds for packages in the node_modules
// of a profile's directory which their scripts have changed, by place.
func BuiltIn(dir string) map[string]store.Integrity {
	built, err := readBuilt(dir)
	if err != nil {
		return nil
	}
	return built
}

// isBuilt reports whether a package stands as its scripts made it.
func (t *tree) isBuilt(at string) bool { _, ok := t.built[at]; return ok }

// contentAt is the id of what stands at the place of a package: what its scripts
// made of it, else what was published. It is zero for a link.
func (t *tree) contentAt(at string) store.Integrity {
	if id, ok := t.built[at]; ok {
		return id
	}
	return t.lock.Nodes[at].Integrity
}

// sameBuilt reports whether the same packages stand built.
func sameBuilt(a, b map[string]store.Integrity) bool { return maps.Equal(a, b) }
