package profile

import "path/filepath"

// Ancestors is the list of node_modules directories that Node.js searches for
// a package that is asked for from dir: dir's own, its parent's, and so on up
// to the root, leaving out directories that are themselves named node_modules.
// It touches no file; dir should be absolute.
func Ancestors(dir string) []string {
	var chain []string
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		if filepath.Base(dir) != "node_modules" {
			chain = append(chain, filepath.Join(dir, "node_modules"))
		}
		if filepath.Dir(dir) == dir {
			return chain
		}
	}
}
