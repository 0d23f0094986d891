//go:build cloud

package e2e

import (
	"bytes"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/rogpeppe/go-internal/testscript"
)

// The keys of the storage, which the scripts' dsh finds in its environment.
const (
	cloudKeyID = "an-id-of-keys"
	cloudKey   = "hush-of-keys"
)

// bucketKey finds a script's storage among its values.
type bucketKey struct{}

// TestCloudScripts runs the scripts in testdata/cloud with a dsh that can fetch
// from the storage of clouds, beside a server that speaks S3.
func TestCloudScripts(t *testing.T) {
	able := filepath.Join(t.TempDir(), filepath.Base(program))
	build := exec.Command("go", "build", "-tags", "cloud", "-o", able, "dsh/cmd/dsh")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building dsh: %v\n%s", err, out)
	}
	params := scriptsIn("cloud")
	params.Setup = func(env *testscript.Env) error {
		if err := setup(env); err != nil {
			return err
		}
		backend := s3mem.New()
		if err := backend.CreateBucket("plugins"); err != nil {
			return err
		}
		server := httptest.NewServer(gofakes3.New(backend).Server())
		env.Defer(server.Close)
		env.Values[bucketKey{}] = backend
		env.Setenv("PATH", filepath.Dir(able)+string(os.PathListSeparator)+env.Getenv("PATH"))
		env.Setenv("S3", server.URL+"/plugins")
		env.Setenv("AWS_ACCESS_KEY_ID", cloudKeyID)
		env.Setenv("AWS_SECRET_ACCESS_KEY", cloudKey)
		return nil
	}
	params.Cmds = maps.Clone(params.Cmds)
	params.Cmds["put"] = put
	params.Cmds["takeaway"] = takeAway
	params.Cmds["nokeys"] = noKeys
	testscript.Run(t, params)
}

// put FILE NAME makes a file an object of the storage.
func put(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: put FILE NAME")
	}
	data := []byte(ts.ReadFile(args[0]))
	_, err := ts.Value(bucketKey{}).(gofakes3.Backend).PutObject("plugins", args[1], nil, bytes.NewReader(data), int64(len(data)), nil)
	ts.Check(err)
}

// takeaway NAME takes an object out of the storage.
func takeAway(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: takeaway NAME")
	}
	_, err := ts.Value(bucketKey{}).(gofakes3.Backend).DeleteObject("plugins", args[0])
	ts.Check(err)
}

// nokeys checks that neither the last command's output nor any file tells the
// keys.
func noKeys(ts *testscript.TestScript, neg bool, args []string) {
	tells := func(where, text string) {
		if strings.Contains(text, cloudKeyID) || strings.Contains(text, cloudKey) {
			ts.Fatalf("%s tells the keys:\n%s", where, text)
		}
	}
	tells("standard output", ts.ReadFile("stdout"))
	tells("standard error", ts.ReadFile("stderr"))
	ts.Check(filepath.WalkDir(ts.MkAbs("."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		tells(path, string(data))
		return err
	}))
}
