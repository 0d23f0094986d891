//go:build cloud

package download

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"dsh/internal/fault"
)

// storageS3 is a server that speaks S3, with one bucket that holds the content.
func storageS3(t *testing.T) (address string, authorization *atomic.Value) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("plugins"); err != nil {
		t.Fatal(err)
	}
	if _, err := backend.PutObject("plugins", "a/x 1.tgz", nil, bytes.NewReader(content), int64(len(content)), nil); err != nil {
		t.Fatal(err)
	}
	authorization = &atomic.Value{}
	server := gofakes3.New(backend).Server()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		authorization.Store(r.Header.Get("Authorization"))
		if strings.Contains(r.URL.Path, "forbidden") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		server.ServeHTTP(w, r)
	}), authorization
}

func TestS3(t *testing.T) {
	address, authorization := storageS3(t)
	const keys = "aws_access_key_id=me&aws_access_key_secret=hush"
	var received atomic.Int64
	for _, query := range []string{"?region=eu-north-1&" + keys, "?" + keys, ""} {
		if query == "" {
			t.Setenv("AWS_ACCESS_KEY_ID", "me")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "hush")
		}
		received.Store(0)
		opts := Options{Received: func(n int64) { received.Add(n) }}
		data, err := fetched(t, opts, "s3::"+address+"/plugins/a/x%201.tgz"+query)
		if err != nil || !bytes.Equal(data, content) {
			t.Errorf("%s: %d bytes, %v", query, len(data), err)
		}
		if sent := fmt.Sprint(authorization.Load()); !strings.Contains(sent, "Credential=me/") {
			t.Errorf("%s: sent %q", query, sent)
		}
		if received.Load() != int64(len(content)) {
			t.Errorf("%s: told of %d bytes", query, received.Load())
		}
	}
}

func TestCloudErrors(t *testing.T) {
	address, _ := storageS3(t)
	const keys = "aws_access_key_id=me&aws_access_key_secret=hush"
	for name, c := range map[string]struct {
		address string
		class   fault.Class
		want    string
	}{
		"no such object":    {"s3::" + address + "/plugins/b.tgz?" + keys, fault.Package, "there is nothing at this address (HTTP 404)"},
		"not allowed":       {"s3::" + address + "/plugins/forbidden.tgz?" + keys, fault.Package, "does not let you have it (HTTP 403)"},
		"too large":         {"s3::" + address + "/plugins/a/x%201.tgz?" + keys, fault.Policy, "larger than 1000 bytes"},
		"no keys":           {"s3::" + address + "/plugins/a/x%201.tgz", fault.Package, "there are no keys for "},
		"a profile":         {"s3::" + address + "/plugins/a/x%201.tgz?aws_profile=x", fault.Package, "there are no keys for "},
		"an order":          {"s3::" + address + "/plugins/a/x%201.tgz?archive=zip&" + keys, fault.Package, `the parameter "archive"`},
		"a checksum":        {"gcs::https://www.googleapis.com/storage/v1/b/x.tgz?checksum=md5:0", fault.Package, `the parameter "checksum"`},
		"a folder inside":   {"s3::" + address + "/plugins//a?" + keys, fault.Package, "an empty part"},
		"nobody there":      {"s3::http://127.0.0.1:1/plugins/x.tgz?" + keys, fault.Network, "connection refused"},
		"no such host":      {"gcs::https://storage.test/storage/v1/b/x.tgz", fault.Package, "such addresses are"},
		"no place in there": {"gcs::https://www.googleapis.com/storage", fault.Package, "such addresses are"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fetched(t, Options{MaxBytes: 1000}, c.address)
			if fault.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v (class %v)", err, fault.ClassOf(err))
			}
			if strings.Contains(fmt.Sprintf("%v %+v", err, err), "hush") {
				t.Errorf("the error tells the secret: %v", err)
			}
		})
	}
}

func TestGCS(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "plugins/a/x.tgz") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Write(content)
	})
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(address, "http://"))
	if data, err := fetched(t, Options{}, "gcs::https://www.googleapis.com/storage/v1/plugins/a/x.tgz"); err != nil || !bytes.Equal(data, content) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	_, err := fetched(t, Options{}, "gcs::https://www.googleapis.com/storage/v1/plugins/b.tgz")
	if fault.ClassOf(err) != fault.Package || !strings.Contains(err.Error(), "there is nothing at this address") {
		t.Errorf("got %v (class %v)", err, fault.ClassOf(err))
	}
}
