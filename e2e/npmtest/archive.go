package npmtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// release is one version of one package, as its archive describes it.
type release struct {
	name, version string
	manifest      map[string]json.RawMessage // package.json
	files         []txtar.File
	directives    directives

	build    func() tarball // builds the tarball once
	statuses counter
	drops    counter
}

// directives are what the comment of an archive asks for.
type directives struct {
	tags            []string
	deprecated      string
	time            time.Time
	wrongIntegrity  bool
	shasumOnly      bool
	corrupt         bool
	truncated       bool
	prefix          string
	evil            string
	status          int
	statusTimes     int // 0: always
	dropAfter       int // -1: never
	dropTimes       int // 0: always
	hang            bool
	packumentStatus int
	token           string
	signature       string // of the Signature constants; "" is good
}

// catalogue is everything that one directory of archives describes.
type catalogue struct {
	packages map[string][]*release // by name, in the order of versions
	archives map[string]*release   // by file name without extension, those of the folder files included
}

func readCatalogue(dir string) (*catalogue, error) {
	c := &catalogue{packages: map[string][]*release{}, archives: map[string]*release{}}
	published, err := readArchives(dir, c.archives)
	if err != nil {
		return nil, err
	}
	if _, err := readArchives(filepath.Join(dir, "files"), c.archives); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for _, r := range published {
		c.packages[r.name] = append(c.packages[r.name], r)
	}
	for name, releases := range c.packages {
		slices.SortFunc(releases, func(a, b *release) int { return compareVersions(a.version, b.version) })
		if err := checkTags(name, releases); err != nil {
			return nil, err
		}
		published := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, r := range releases {
			if r.directives.time.IsZero() {
				r.directives.time = published
			}
			published = r.directives.time.AddDate(0, 0, 1)
		}
	}
	return c, nil
}

func readArchives(dir string, into map[string]*release) ([]*release, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []*release
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), ".txtar")
		if !ok {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		r, err := parseArchive(base, data)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, e.Name()), err)
		}
		into[base] = r
		all = append(all, r)
	}
	return all, nil
}

// parseArchive reads the archive of base, a file name without its extension.
func parseArchive(base string, data []byte) (*release, error) {
	name, version, err := splitBase(base)
	if err != nil {
		return nil, err
	}
	archive := txtar.Parse(data)
	d, err := parseDirectives(string(archive.Comment))
	if err != nil {
		return nil, err
	}
	r := &release{name: name, version: version, files: archive.Files, directives: d}
	r.statuses.limit, r.drops.limit = d.statusTimes, d.dropTimes
	r.build = sync.OnceValue(func() tarball { return buildTarball(r.files, d) })

	i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "package.json" })
	if i < 0 {
		return nil, fmt.Errorf("no package.json")
	}
	decoder := json.NewDecoder(bytes.NewReader(archive.Files[i].Data))
	if err := decoder.Decode(&r.manifest); err != nil {
		return nil, fmt.Errorf("package.json: %w", err)
	}
	for key, want := range map[string]string{"name": name, "version": version} {
		var got string
		if err := json.Unmarshal(r.manifest[key], &got); err != nil || got != want {
			return nil, fmt.Errorf("package.json: %s is %s, but the file name says %q", key, r.manifest[key], want)
		}
	}
	return r, nil
}

// Unpack writes the files of an archive into dir, which is made when it does not exist: a package as its author has it on disk.
func Unpack(archive, dir string) error {
	data, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	for _, f := range txtar.Parse(data).Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

func splitBase(base string) (name, version string, err error) {
	i := strings.LastIndexByte(base, '_')
	if i <= 0 || i == len(base)-1 {
		return "", "", fmt.Errorf("the file name is not NAME_VERSION.txtar")
	}
	name, version = base[:i], base[i+1:]
	if strings.HasPrefix(name, "@") {
		scope, rest, ok := strings.Cut(name, "+")
		if !ok {
			return "", "", fmt.Errorf("the scoped name %q has no plus sign", name)
		}
		name = scope + "/" + rest
	}
	return name, version, nil
}

func parseDirectives(comment string) (directives, error) {
	d := directives{prefix: "package", dropAfter: -1}
	for line := range strings.Lines(comment) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		if err := d.set(key, strings.TrimSpace(value)); err != nil {
			return d, fmt.Errorf("directive %q: %w", line, err)
		}
	}
	return d, nil
}

func (d *directives) set(key, value string) (err error) {
	flags := map[string]*bool{"shasum-only": &d.shasumOnly, "corrupt": &d.corrupt, "truncated": &d.truncated, "hang": &d.hang}
	if flag, ok := flags[key]; ok {
		if value != "" {
			return fmt.Errorf("takes no value")
		}
		*flag = true
		return nil
	}
	if value == "" {
		return fmt.Errorf("is unknown or has no value")
	}
	switch key {
	case "tag":
		d.tags = strings.Fields(value)
	case "deprecated":
		d.deprecated = value
	case "time":
		d.time, err = time.Parse(time.RFC3339, value)
	case "integrity":
		if value != "wrong" {
			return fmt.Errorf("the only value is wrong")
		}
		d.wrongIntegrity = true
	case "prefix":
		d.prefix = value
	case "evil":
		if !slices.Contains(evilKinds, value) {
			return fmt.Errorf("the kinds are %s", strings.Join(evilKinds, ", "))
		}
		d.evil = value
	case "status":
		d.status, d.statusTimes, err = parseTimes(value)
	case "drop-after":
		d.dropAfter, d.dropTimes, err = parseTimes(value)
	case "packument-status":
		d.packumentStatus, err = strconv.Atoi(value)
	case "token":
		d.token = value
	case "signature":
		err = checkSignature(value)
		d.signature = value
	default:
		return fmt.Errorf("is unknown")
	}
	return err
}

// parseTimes reads "N" or "N TIMES".
func parseTimes(value string) (n, times int, err error) {
	first, second, limited := strings.Cut(value, " ")
	if n, err = strconv.Atoi(first); err != nil {
		return 0, 0, err
	}
	if limited {
		times, err = strconv.Atoi(strings.TrimSpace(second))
	}
	return n, times, err
}

func checkTags(name string, releases []*release) error {
	seen := map[string]string{}
	for _, r := range releases {
		for _, tag := range r.directives.tags {
			if other, ok := seen[tag]; ok {
				return fmt.Errorf("%s: versions %s and %s both ask for the tag %s", name, other, r.version, tag)
			}
			seen[tag] = r.version
		}
	}
	return nil
}

// distTags gives the version of each tag; releases is in the order of versions and not empty.
func distTags(releases []*release) map[string]string {
	tags := map[string]string{"latest": releases[len(releases)-1].version}
	for _, r := range releases {
		if !isPrerelease(r.version) {
			tags["latest"] = r.version
		}
	}
	for _, r := range releases {
		for _, tag := range r.directives.tags {
			tags[tag] = r.version
		}
	}
	return tags
}

func isPrerelease(version string) bool {
	core, _, _ := strings.Cut(version, "+")
	return strings.Contains(core, "-")
}

// compareVersions orders by the numbers, then a prerelease before its release, then prereleases field by field, as semver does.
func compareVersions(a, b string) int {
	a, _, _ = strings.Cut(a, "+")
	b, _, _ = strings.Cut(b, "+")
	coreA, preA, isPreA := strings.Cut(a, "-")
	coreB, preB, isPreB := strings.Cut(b, "-")
	if c := slices.CompareFunc(strings.Split(coreA, "."), strings.Split(coreB, "."), compareFields); c != 0 {
		return c
	}
	if isPreA != isPreB {
		if isPreA {
			return -1
		}
		return 1
	}
	return slices.CompareFunc(strings.Split(preA, "."), strings.Split(preB, "."), compareFields)
}

func compareFields(a, b string) int {
	na, errA := strconv.ParseUint(a, 10, 64)
	nb, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		return cmp.Compare(na, nb)
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return strings.Compare(a, b)
}

// counter decides whether a misbehaviour with a limit still happens.
type counter struct {
	mu    sync.Mutex
	limit int // 0: always
	used  int
}

func (c *counter) take() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limit > 0 && c.used >= c.limit {
		return false
	}
	c.used++
	return true
}
