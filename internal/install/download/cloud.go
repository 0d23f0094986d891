//go:build cloud

package download

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	gcs "github.com/hashicorp/go-getter/gcs/v2"
	s3 "github.com/hashicorp/go-getter/s3/v2"
	"github.com/hashicorp/go-getter/v2"

	"dsh/internal/fault"
	"dsh/internal/staging"
)

const (
	cloudLook    = 200 * time.Millisecond // how often the size of the file is looked at
	cloudSilence = 2 * time.Minute        // how long nothing may come
)

// errSilent ends a transfer in which nothing came for too long.
var errSilent = errors.New("no data for 120 s")

// parameters are those that an address of a cloud's storage may have, by how it is
// fetched. go-getter would take others for orders.
var parameters = map[string][]string{
	"s3": {"version", "region", "aws_profile", "aws_access_key_id", "aws_access_key_secret", "aws_access_token"},
}

// fromCloud fetches from the storage of a cloud, by the client of its maker: the
// credentials are those of the address or of the maker's own settings, and tokens
// of registries play no part.
func fromCloud(ctx context.Context, opts Options, forced string, u *url.URL, file string) error {
	for name := range u.Query() {
		if !slices.Contains(parameters[forced], name) {
			return fault.Errorf(fault.Package, "the parameter %q means nothing there", name)
		}
	}
	if strings.Contains(u.Path, "//") {
		return fault.Errorf(fault.Package, "its path has an empty part")
	}
	var with getter.Getter = &gcs.Getter{}
	if forced == "s3" {
		with = &s3.Getter{}
		var err error
		if u, err = withKeys(u); err != nil {
			return err
		}
	} else if !strings.HasSuffix(u.Host, ".googleapis.com") || len(strings.Split(u.Path, "/")) < 5 {
		return fault.Errorf(fault.Package, "such addresses are gcs::https://www.googleapis.com/storage/v1/BUCKET/NAME")
	}
	t := &transfer{opts: opts}
	for {
		err := cloudOnce(ctx, opts, with, forced+"::"+u.String(), file)
		if err == nil {
			return nil
		}
		t.furthest = max(t.furthest, size(file))
		if err := t.again(ctx, err); err != nil {
			return err
		}
		if err := staging.RemoveAll(file); err != nil {
			return err
		}
	}
}

// withKeys is an address of storage that speaks S3 and is not Amazon's with the
// keys of the environment, unless it has its own. go-getter would ask Amazon
// instead of a host for which the address has no keys.
func withKeys(u *url.URL) (*url.URL, error) {
	q := u.Query()
	if strings.HasSuffix(u.Host, ".amazonaws.com") || q.Has("aws_access_key_id") {
		return u, nil
	}
	id, secret := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	if id == "" || secret == "" || q.Has("aws_profile") {
		return nil, fault.WithHint(fault.Errorf(fault.Package, "there are no keys for %s", u.Host),
			"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	q.Set("aws_access_key_id", id)
	q.Set("aws_access_key_secret", secret)
	if token := os.Getenv("AWS_SESSION_TOKEN"); token != "" {
		q.Set("aws_access_token", token)
	}
	keyed := *u
	keyed.RawQuery = q.Encode()
	return &keyed, nil
}

// cloudOnce fetches once. These clients have neither a limit nor a time-out on
// silence, and tell nobody what came; so the file is looked at as it grows.
func cloudOnce(ctx context.Context, opts Options, with getter.Getter, address, file string) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done, looked := make(chan struct{}), make(chan struct{})
	var got int64
	look := func() bool {
		before := got
		got = size(file)
		if opts.Received != nil && got > before {
			opts.Received(got - before)
		}
		if got > opts.MaxBytes {
			cancel(tooLarge(opts.MaxBytes))
		}
		return got > before
	}
	go func() {
		defer close(looked)
		tick := time.NewTicker(cloudLook)
		defer tick.Stop()
		last := time.Now()
		for {
			select {
			case <-done:
				return
			case now := <-tick.C:
				if look() {
					last = now
				} else if now.Sub(last) > cloudSilence {
					cancel(errSilent)
				}
			}
		}
	}()
	err := get(within, with, address, file)
	close(done)
	<-looked
	look()
	if cause := context.Cause(within); cause != nil && ctx.Err() == nil {
		if errors.Is(cause, errSilent) {
			return &temporaryError{error: fault.WithClass(fault.Network, cause)}
		}
		return cause
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	return cloudRefused(err)
}

// cloudRefused is the error for what a cloud's storage refuses.
func cloudRefused(err error) error {
	answered, ok := errors.AsType[interface {
		error
		StatusCode() int
	}](err)
	switch {
	case errors.Is(err, storage.ErrObjectNotExist), errors.Is(err, storage.ErrBucketNotExist):
		return refused(&http.Response{StatusCode: http.StatusNotFound})
	case ok:
		return refused(&http.Response{StatusCode: answered.StatusCode()})
	}
	return broken(err)
}

// size is that of the file, 0 where there is none.
func size(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}
