package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-getter/v2"

	"dsh/internal/fault"
	"dsh/internal/install/registry"
)

// maxDownload bounds an archive that is fetched by its address, in bytes.
const maxDownload = 1 << 30

// maxTransfer bounds the whole transfer of one archive. That data keeps
// coming is the HTTP client's to watch.
const maxTransfer = 2 * time.Hour

// download fetches the file at an address into dir and returns its path.
//
// The transport is go-getter, with everything switched off that lets an
// address or a server choose what happens: no detectors, no unpacking, no
// subdirectories, no X-Terraform-Get, no netrc, no HEAD request, no resuming
// into a file that exists. It cuts off silently at MaxBytes and does not
// check content, so the size is checked here and the hash by the store.
func download(ctx context.Context, client *http.Client, address, dir string) (string, error) {
	if err := plainAddress(address); err != nil {
		return "", err
	}
	// A copy of the client whose transport remembers how the server answered;
	// go-getter's error says it in words only.
	status := &statusRecorder{next: client.Transport}
	recording := *client
	recording.Transport = status

	dst := filepath.Join(dir, "archive")
	_, err := (&getter.Client{
		DisableSymlinks: true,
		Decompressors:   map[string]getter.Decompressor{},
		Getters: []getter.Getter{&getter.HttpGetter{
			Client:                &recording,
			DoNotCheckHeadFirst:   true,
			MaxBytes:              maxDownload + 1,
			ReadTimeout:           maxTransfer,
			XTerraformGetDisabled: true,
		}},
	}).Get(ctx, &getter.Request{Src: address, Dst: dst, GetMode: getter.ModeFile})
	if err != nil {
		return "", downloadError(ctx, address, status.code, err)
	}
	info, err := os.Stat(dst)
	if err != nil {
		return "", err
	}
	if info.Size() > maxDownload {
		return "", fault.Errorf(fault.Policy, "download %s: the archive is larger than %d bytes", registry.ShownAddress(address), int64(maxDownload))
	}
	return dst, nil
}

// plainAddress refuses addresses in which go-getter would read something else
// than an address.
func plainAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fault.Errorf(fault.Other, "%q is not a valid address", registry.ShownAddress(address))
	}
	refuse := func(what string) error {
		return fault.Errorf(fault.Policy, "download %s: %s has a special meaning to the downloader", registry.ShownAddress(address), what)
	}
	if strings.Contains(address, "::") {
		return refuse(`"::"`)
	}
	if strings.Contains(u.Path, "//") {
		return refuse(`"//" in the path`)
	}
	for _, name := range []string{"archive", "checksum", "filename"} {
		if u.Query().Has(name) {
			return refuse("the parameter " + name)
		}
	}
	return nil
}

func downloadError(ctx context.Context, address string, status int, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("download %s: %w", registry.ShownAddress(address), err)
	}
	switch {
	case status == http.StatusNotFound || status == http.StatusGone:
		return fault.Errorf(fault.Package, "download %s: there is nothing at this address (HTTP %d)", registry.ShownAddress(address), status)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault.Errorf(fault.Package, "download %s: the server does not let you have it (HTTP %d)", registry.ShownAddress(address), status)
	case status >= 300:
		return fault.Errorf(fault.Network, "download %s: the server answered HTTP %d", registry.ShownAddress(address), status)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // its text repeats the address, password and all
	}
	return fault.Errorf(fault.Network, "download %s: %w", registry.ShownAddress(address), err)
}

// statusRecorder keeps the code of the last answer.
type statusRecorder struct {
	next http.RoundTripper
	code int
}

func (s *statusRecorder) RoundTrip(req *http.Request) (*http.Response, error) {
	next := s.next
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(req)
	if err == nil {
		s.code = resp.StatusCode
	}
	return resp, err
}
