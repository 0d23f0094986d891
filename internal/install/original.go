package install

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"dsh/internal/fault"
	"dsh/internal/install/download"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/install/unpack"
	"dsh/internal/staging"
)

// Download fetches the file at an address into a temporary directory of the
// store, which goes with its Close, and returns its path. Received may be nil.
func Download(ctx context.Context, client *registry.Client, packages *store.Store, address string, received func(bytes int64)) (file string, err error) {
	dir, err := packages.TempDir()
	if err != nil {
		return "", err
	}
	return download.Get(ctx, download.Options{
		Client: client.HTTP(), Temp: dir, Retries: client.Retries(), Pause: client.Pause, Received: received,
	}, address)
}

// Original fetches the archive that a package of a registry or an address was
// unpacked from, as a file in a temporary directory of the store, and checks it
// against the package's integrity. The store has the content alone, which proves
// nothing to somebody else.
func Original(ctx context.Context, client *registry.Client, packages *store.Store, pkg *Package) (file string, err error) {
	switch pkg.Origin.Kind {
	case URL:
		file, err = fromAddress(ctx, client, packages, pkg)
	case Registry:
		file, err = fromRegistry(ctx, client, packages, pkg)
	default:
		return "", fault.Errorf(fault.Package, "%s comes from neither a registry nor an address", pkg.describe())
	}
	if err == nil {
		err = CheckArchive(file, pkg.Integrity)
	}
	return file, within(pkg.describe(), err)
}

// fromAddress fetches the archive of a package that is named by an address. Where
// pnpm could not install that, it is the one that was made of it.
func fromAddress(ctx context.Context, client *registry.Client, packages *store.Store, pkg *Package) (file string, err error) {
	spec, err := urlSpec(pkg.Origin.Place)
	if err != nil {
		return "", err
	}
	file, err = Download(ctx, client, packages, forced(spec)+spec.Place, nil)
	if err != nil {
		return "", err
	}
	npm, err := isNpmArchiveIn(file, spec)
	if err == nil && (!npm || CheckArchive(file, pkg.Integrity) != nil) { // one without a folder in it was made anew, too
		_, file, err = repack(ctx, packages, file, spec.Inside, pkg.Integrity)
	}
	return file, err
}

func isNpmArchiveIn(file string, spec Spec) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	format, err := unpack.Format(f, info.Size())
	return isNpmArchive(spec, format), err
}

func fromRegistry(ctx context.Context, client *registry.Client, packages *store.Store, pkg *Package) (file string, err error) {
	dir, err := packages.TempDir()
	if err != nil {
		return "", err
	}
	body, _, err := client.OpenTarball(ctx, registryDist(client, pkg))
	if err != nil {
		return "", err
	}
	defer body.Close()
	file = filepath.Join(dir, "archive")
	out, err := staging.OS.Create(file, 0o644)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, body)
	return file, errors.Join(err, out.Close())
}

// registryDist is where a registry has a locked package.
func registryDist(client *registry.Client, pkg *Package) registry.Dist {
	dist := registry.Dist{Tarball: pkg.Origin.Place}
	if dist.Tarball == "" {
		dist.Tarball = client.TarballURL(pkg.Name, pkg.Version)
	}
	return dist
}

// CheckArchive holds a file against a hash; another content is a
// [*store.MismatchError].
func CheckArchive(file string, want store.Integrity) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	got, err := ArchiveIntegrity(f)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if got != want {
		return &store.MismatchError{Want: want, Got: got}
	}
	return nil
}

// ArchiveIntegrity is the hash of the bytes of an archive.
func ArchiveIntegrity(r io.Reader) (store.Integrity, error) {
	sum := sha512.New()
	if _, err := io.Copy(sum, r); err != nil {
		return store.Integrity{}, err
	}
	return integrityOf(sum)
}

func integrityOf(sum hash.Hash) (store.Integrity, error) {
	return store.ParseIntegrity("sha512-" + base64.StdEncoding.EncodeToString(sum.Sum(nil)))
}
