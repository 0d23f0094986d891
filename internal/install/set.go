package install

import (
	"encoding/base64"
	"encoding/hex"
	"path"
	"strings"

	"dsh/internal/install/store"
)

// KeptDir is the folder of a profile with archives that package.json names by
// file: specs, because it could not name where they come from.
const KeptDir = "archives"

// KeptPlace is where a profile keeps the archive of a package that has such an
// integrity, slash-separated and relative to its directory.
func KeptPlace(name, version string, id store.Integrity) string {
	sum, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(id.String(), "sha512-"))
	return path.Join(KeptDir, strings.ReplaceAll(name, "/", "+")+"-"+version+"-"+hex.EncodeToString(sum[:4])+".tgz")
}
