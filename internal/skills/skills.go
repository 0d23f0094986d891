package skills

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"dsh/internal/fault"
)

// PluginName is the name of the plugin whose rows are providers of skills.
const PluginName = "@deepseek-ai/dsh-skill-filesystem"

// Config is the config of such a row. Directories are absolute.
type Config struct {
	ProviderName        string   `json:"providerName"`
	IncludeDefaultRoots *bool    `json:"includeDefaultRoots"`
	CustomSkillDirs     []string `json:"customSkillDirs"`
	BundledSkillDir     string   `json:"bundledSkillDir"`
	DshHome             string   `json:"dshHome"`
	AgentsHome          string   `json:"agentsHome"`
	Watch               *bool    `json:"watch"`
	// How files are watched in the reference; here the system tells of every change.
	WatchUsePolling           bool    `json:"watchUsePolling"`
	WatchStabilityThresholdMs float64 `json:"watchStabilityThresholdMs"`
	WatchPollIntervalMs       float64 `json:"watchPollIntervalMs"`
	WatchMaxProjects          float64 `json:"watchMaxProjects"`
	WatchFollowSymlinks       *bool   `json:"watchFollowSymlinks"`
}

// Provider is the name of the provider.
func (c Config) Provider() string { return cmp.Or(c.ProviderName, "filesystem") }

// Place is where folders are searched that a config does not name. All are
// absolute.
type Place struct {
	Cwd        string
	DshHome    string
	AgentsHome string
}

// AgentsHome is the folder that all agents share: $DSH_AGENTS_HOME, else .agents
// in the user's home.
func AgentsHome(getenv func(string) string, userHome string) string {
	if dir := getenv("DSH_AGENTS_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(userHome, ".agents")
}

// The ranks of folders. Of two skills with one name the one of the lower rank
// counts.
const (
	projectDsh    = 100
	projectAgents = 200
	custom        = 300
	ofDshHome     = 400
	ofAgentsHome  = 500
	bundled       = 600
)

// Root is a folder that holds skills. It need not be there.
type Root struct {
	Dir  string `json:"dir"`
	Rank int    `json:"rank"`
}

// Roots are the folders that a row searches, by rank.
func (c Config) Roots(at Place) (roots []Root) {
	dshHome, agentsHome := cmp.Or(c.DshHome, at.DshHome), cmp.Or(c.AgentsHome, at.AgentsHome)
	defaults := c.IncludeDefaultRoots == nil || *c.IncludeDefaultRoots
	if defaults {
		project := Project(at.Cwd)
		roots = append(roots, Root{filepath.Join(project, ".dsh", "skills"), projectDsh}, Root{filepath.Join(project, ".agents", "skills"), projectAgents})
	}
	for _, dir := range c.CustomSkillDirs {
		roots = append(roots, Root{dir, custom})
	}
	if defaults {
		roots = append(roots, Root{filepath.Join(dshHome, "skills"), ofDshHome}, Root{filepath.Join(agentsHome, "skills"), ofAgentsHome})
	}
	if c.BundledSkillDir != "" {
		roots = append(roots, Root{c.BundledSkillDir, bundled})
	}
	return roots
}

// Project is the nearest directory at or above dir with a .git in it, else dir.
func Project(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if filepath.Dir(at) == at {
			return dir
		}
	}
}

// Skill is a skill that was found. Its body is read when it is asked for.
type Skill struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	WhenToUse   string            `json:"whenToUse"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	// UserInvocable and ModelInvocable say who may load it.
	UserInvocable  bool   `json:"userInvocable"`
	ModelInvocable bool   `json:"modelInvocable"`
	Path           string `json:"path"` // the file
	Root           Root   `json:"root"`
	// Base is the folder of the skill's other files; "" for a single file.
	Base string `json:"base"`
}

// Skipped is a file that would be a skill if nothing were wrong with it.
type Skipped struct {
	Path string `json:"path"`
	Root Root   `json:"root"`
	Why  string `json:"why"`
}

// Hidden is a skill whose name an earlier one has.
type Hidden struct {
	Skill
	By string `json:"by"` // the path of that one
}

// Found is what folders hold.
type Found struct {
	Skills  []Skill // by rank, then by name
	Hidden  []Hidden
	Skipped []Skipped
}

// Scan looks through folders. One that is not there is no error.
func Scan(roots []Root) Found {
	var found Found
	byName := map[string]string{}
	roots = slices.Clone(roots)
	slices.SortStableFunc(roots, func(a, b Root) int { return cmp.Compare(a.Rank, b.Rank) })
	for _, root := range roots {
		skills, skipped := root.scan()
		found.Skipped = append(found.Skipped, skipped...)
		for _, s := range skills {
			if by, taken := byName[s.Name]; taken {
				found.Hidden = append(found.Hidden, Hidden{s, by})
				continue
			}
			byName[s.Name] = s.Path
			found.Skills = append(found.Skills, s)
		}
	}
	return found
}

// The bounds of what is read.
const (
	mostEntries     = 10_000
	mostFrontmatter = 64 << 10
	mostBody        = 1 << 20
)

// scan looks through one folder: NAME/SKILL.md and NAME.md, one level deep. The
// folder of a name comes before its file.
func (r Root) scan() (found []Skill, skipped []Skipped) {
	entries, err := os.ReadDir(r.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []Skipped{{r.Dir, r, "the folder cannot be read: " + reason(err)}}
	}
	if len(entries) > mostEntries {
		return nil, []Skipped{{r.Dir, r, fmt.Sprintf("the folder has more than %d entries", mostEntries)}}
	}
	type candidate struct{ name, path, base string }
	var list []candidate
	for _, e := range entries {
		path := filepath.Join(r.Dir, e.Name())
		if r.Rank == ofDshHome && e.Name() == ".system" {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() { // links count as what they lead to
			list = append(list, candidate{e.Name(), filepath.Join(path, "SKILL.md"), path})
		} else if name, ok := strings.CutSuffix(e.Name(), ".md"); ok {
			list = append(list, candidate{name, path, ""})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		if a.name == b.name {
			return strings.Compare(b.base, a.base) // "" last
		}
		return strings.Compare(a.name, b.name)
	})
	for _, c := range list {
		text, err := readRegular(c.path, mostFrontmatter, true)
		if errors.Is(err, fs.ErrNotExist) && c.base != "" {
			continue // a folder that is no skill
		}
		var skill Skill
		if err == nil {
			skill, err = Parse(text)
		}
		if err != nil {
			skipped = append(skipped, Skipped{c.path, r, reason(err)})
			continue
		}
		skill.Path, skill.Base, skill.Root = c.path, c.base, r
		found = append(found, skill)
	}
	return found, skipped
}

// reason is an error without the path that stands beside it.
func reason(err error) string {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err
	}
	return err.Error()
}

// readRegular reads a regular file of at most limit bytes; with head, its
// beginning.
func readRegular(path string, limit int64, head bool) (text []byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	if !head && info.Size() > limit {
		return nil, fmt.Errorf("it is larger than %d KiB", limit>>10)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, limit))
}

// Body is the instructions of the skill, below its frontmatter.
func (s Skill) Body() (string, error) {
	text, err := readRegular(s.Path, mostBody, false)
	if err != nil {
		return "", fault.Errorf(fault.Other, "read skill %s: %s: %s", s.Name, s.Path, reason(err))
	}
	_, body, err := cut(text)
	if err != nil {
		return "", fault.Errorf(fault.Other, "read skill %s: %s: %w", s.Name, s.Path, err)
	}
	return body, nil
}

// cut cuts a text at the two lines of three hyphens.
func cut(text []byte) (head, body string, err error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	first, rest, ok := strings.Cut(string(text), "\n")
	fence := func(line string) bool { return strings.TrimRight(line, " \t\r") == "---" }
	if !fence(first) || !ok {
		return "", "", errors.New("it does not begin with frontmatter between two lines ---")
	}
	for at := 0; at < len(rest); {
		line, _, _ := strings.Cut(rest[at:], "\n")
		next := min(at+len(line)+1, len(rest))
		if fence(line) {
			return rest[:at], rest[next:], nil
		}
		at = next
	}
	return "", "", fmt.Errorf("its frontmatter is not closed with a line --- in the first %d KiB", mostFrontmatter>>10)
}

var kebab = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Parse reads the frontmatter of a skill. Whatever of it decides who may load the
// skill and cannot be understood is an error: such a skill is for nobody.
func Parse(text []byte) (Skill, error) {
	head, _, err := cut(text)
	if err != nil {
		return Skill{}, err
	}
	if !utf8.ValidString(head) {
		return Skill{}, errors.New("its frontmatter is no UTF-8")
	}
	var document yaml.Node
	// The line of the fence is there for the numbers of lines.
	if err := yaml.Unmarshal([]byte("\n"+head), &document); err != nil {
		return Skill{}, fmt.Errorf("its frontmatter is not YAML: %s", strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "))
	}
	if document.Kind != yaml.DocumentNode || document.Content[0].Kind != yaml.MappingNode {
		return Skill{}, errors.New("its frontmatter is no mapping")
	}
	s := Skill{UserInvocable: true, ModelInvocable: true}
	seen := map[string]bool{}
	for i := 0; i+1 < len(document.Content[0].Content); i += 2 {
		key, value := document.Content[0].Content[i], document.Content[0].Content[i+1]
		if key.Kind == yaml.ScalarNode && seen[key.Value] {
			return Skill{}, fmt.Errorf("its frontmatter has %q twice", key.Value)
		}
		seen[key.Value] = true
		if err := s.set(key.Value, value); err != nil {
			return Skill{}, err
		}
	}
	switch {
	case s.Name == "":
		return Skill{}, errors.New("there is no name")
	case len(s.Name) > 64 || !kebab.MatchString(s.Name):
		return Skill{}, fmt.Errorf("the name %q is not of lowercase letters and digits with single hyphens between them", s.Name)
	case s.Description == "":
		return Skill{}, errors.New("there is no description")
	}
	return s, nil
}

func (s *Skill) set(key string, value *yaml.Node) error {
	switch key {
	case "name", "description", "whenToUse":
		if value.Kind != yaml.ScalarNode {
			return fmt.Errorf("%s is no text", key)
		}
		text := strings.TrimSpace(value.Value)
		if value.ShortTag() == "!!null" {
			text = ""
		}
		*map[string]*string{"name": &s.Name, "description": &s.Description, "whenToUse": &s.WhenToUse}[key] = text
	case "disable-model-invocation", "user-invocable":
		on, ok := flag(value)
		if !ok {
			return fmt.Errorf("%s is neither true nor false, so that nobody may load the skill", key)
		}
		if key == "user-invocable" {
			s.UserInvocable = on
		} else {
			s.ModelInvocable = !on
		}
	case "metadata":
		// What is in it is for others; a wrong shape harms nobody.
		if value.Kind == yaml.MappingNode {
			s.Metadata = map[string]string{}
			for i := 0; i+1 < len(value.Content); i += 2 {
				if value.Content[i+1].Kind == yaml.ScalarNode {
					s.Metadata[value.Content[i].Value] = value.Content[i+1].Value
				}
			}
		}
	}
	return nil
}

// flag reads a switch: the booleans of YAML, yes and no, on and off, 1 and 0, in
// any case.
func flag(value *yaml.Node) (on, ok bool) {
	if value.Kind != yaml.ScalarNode {
		return false, false
	}
	switch strings.ToLower(strings.TrimSpace(value.Value)) {
	case "true", "yes", "on", "1":
		return true, true
	case "false", "no", "off", "0":
		return false, true
	}
	return false, false
}
