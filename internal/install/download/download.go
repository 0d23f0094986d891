package download

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-getter/v2"

	"dsh/internal/fault"
	"dsh/internal/install/registry"
	"dsh/internal/staging"
)

// DefaultMaxBytes bounds a file where nothing else is said.
const DefaultMaxBytes = 1 << 30

// Options say how a file is fetched. Client and Temp are needed.
type Options struct {
	// Client brings proxies, certificates, tokens and the time-out on silence.
	// Its redirects are followed by the rules of this package.
	Client *http.Client
	// Temp is a directory of the caller's own, where the file is made.
	Temp string
	// Retries is how often a transfer that breaks off is taken up again while
	// nothing comes of it.
	Retries int
	// Pause is how long to wait before retry n, counted from 0, when the server
	// asks to wait for so long, 0 where it does not say. Nil never waits.
	Pause func(n int, asked time.Duration) time.Duration
	// Received is told how many bytes came. It may be nil.
	Received func(bytes int64)
	MaxBytes int64 // 0 is DefaultMaxBytes
}

// Get fetches the file at an address into opts.Temp and returns its path. The
// address is http or https, or one of a cloud's storage behind "s3::" or "gcs::",
// which takes the build with the tag cloud. After an error nothing of it is left.
//
// The transport is go-getter, which is told the host alone: whatever it reads
// into the rest of an address, as parameters, subdirectories and names of
// archives, does not matter then. What is asked for, and how often, is the
// matter of [transfer]. Unpacking, X-Terraform-Get, netrc and HEAD requests are
// off. It cuts off silently at its size limit and does not check content, so the
// size is checked here and the hash by whoever wants the file.
func Get(ctx context.Context, opts Options, address string) (file string, err error) {
	if opts.MaxBytes == 0 {
		opts.MaxBytes = DefaultMaxBytes
	}
	forced, plain, isForced := strings.Cut(address, "::")
	if !isForced || strings.Contains(forced, "/") {
		forced, plain = "", address
	}
	shown := registry.ShownAddress(plain)
	if forced != "" {
		shown = forced + "::" + shown
	}
	u, err := url.Parse(plain)
	if err != nil {
		return "", fault.Errorf(fault.Other, "%s is not a valid address", shown)
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return "", fault.Errorf(fault.Package, "download %s: it is no http or https address", shown)
	}
	file = filepath.Join(opts.Temp, "archive")
	defer func() {
		if err == nil {
			return
		}
		if gone := staging.OS.Remove(file); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		file = ""
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		default:
			err = within(shown, err)
		}
	}()
	switch forced {
	case "":
		return file, overHTTP(ctx, opts, u, file)
	case "s3", "gcs":
		return file, fromCloud(ctx, opts, forced, u, file)
	default:
		return file, fault.Errorf(fault.Package, "%q is no way to download that this program knows", forced+"::")
	}
}

// overHTTP fetches into a file, anew as often as what was there at first is not
// there any more.
func overHTTP(ctx context.Context, opts Options, u *url.URL, file string) error {
	t := newTransfer(opts, u)
	for {
		err := get(ctx, &getter.HttpGetter{
			Client:                &http.Client{Transport: t, CheckRedirect: useLast},
			DoNotCheckHeadFirst:   true,
			MaxBytes:              opts.MaxBytes + 1,
			XTerraformGetDisabled: true,
		}, u.Scheme+"://"+u.Host+"/archive", file)
		if err == nil || !errors.Is(err, errAnew) {
			return err
		}
		if err := staging.OS.Remove(file); err != nil {
			return err
		}
	}
}

// get has go-getter fetch one file, which is not there yet.
func get(ctx context.Context, with getter.Getter, address, file string) error {
	_, err := (&getter.Client{
		DisableSymlinks: true,
		Decompressors:   map[string]getter.Decompressor{},
		Getters:         []getter.Getter{with},
	}).Get(ctx, &getter.Request{Src: address, Dst: file, GetMode: getter.ModeFile})
	return err
}

// within says what could not be downloaded. Of the error of a client only the
// cause is told: its text repeats the address.
func within(shown string, err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	_, onDisk := errors.AsType[*fs.PathError](err)
	if onDisk || classed(err) {
		return fmt.Errorf("download %s: %w", shown, err)
	}
	return fault.Errorf(fault.Network, "download %s: %w", shown, err)
}

func classed(err error) bool {
	_, ok := errors.AsType[fault.Classed](err)
	return ok
}

// tooLarge is the error for a file over the limit.
func tooLarge(limit int64) error {
	return fault.Errorf(fault.Policy, "the archive is larger than %d bytes", limit)
}
