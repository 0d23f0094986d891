package e2e

import (
	"crypto/sha512"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"

	"dsh/e2e/npmtest"
)

// archiveHash is where a file of a script wants the hash of an archive of the
// registry, "sha512(is-odd_3.0.1)".
var archiveHash = regexp.MustCompile(`sha512\(([^)]+)\)`)

// hashes FILE... writes hashes into lockfiles, for the archives are made anew in
// each run.
func hashes(ts *testscript.TestScript, neg bool, args []string) {
	server := ts.Value(registryKey{}).(*npmtest.Server)
	for _, file := range args {
		text := archiveHash.ReplaceAllStringFunc(ts.ReadFile(file), func(wanted string) string {
			name := archiveHash.FindStringSubmatch(wanted)[1]
			resp, err := http.Get(server.URL() + "/files/" + name + ".tgz")
			ts.Check(err)
			defer resp.Body.Close()
			sum := sha512.New()
			_, err = io.Copy(sum, resp.Body)
			ts.Check(err)
			if resp.StatusCode != http.StatusOK {
				ts.Fatalf("no archive %s: %s", name, resp.Status)
			}
			return "sha512-" + base64.StdEncoding.EncodeToString(sum.Sum(nil))
		})
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text), 0o644))
	}
}
