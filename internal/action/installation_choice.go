package action

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/installation"
	"dsh/internal/profile"
	"dsh/internal/runtimes"
)

// What commands about installations name.
const (
	HarnessPackage = runtimes.Launcher
	KnownHarness   = runtimes.Known    // the release that is known to work
	Embedded       = runtimes.Embedded // the installation inside dsh
)

// ChosenBy is who chose the installation.
type ChosenBy string

// Who chooses, the first that does counts.
const (
	ByOption  ChosenBy = "option"  // --installation or $DSH_INSTALLATION
	ByProfile ChosenBy = "profile" // dsh installation use --profile
	ByHome    ChosenBy = "home"    // dsh installation use
	ByNobody  ChosenBy = "default" // and the embedded one it is
)

// Choice is the installation that counts for a profile.
type Choice struct {
	Installation installation.Installation
	// Name is what the user calls it: the name of one in the home, "embedded",
	// or a directory.
	Name string
	By   ChosenBy
	node string // the program that was found when it was installed, "" where dsh did not install it
}

// Embedded says whether it is the one inside dsh.
func (c Choice) Embedded() bool {
	_, isDir := installation.Launcher(c.Installation)
	return !isDir
}

// Program is what starts the launcher of an installation that is a directory:
// Node.js and its script. Without a Node.js of its own it is the one on PATH.
func (c Choice) Program(env Env) (node, script string, err error) {
	app, ok := installation.Launcher(c.Installation)
	if !ok {
		return "", "", fault.Errorf(fault.Other, "the %s installation has no launcher", c.Name)
	}
	if script, err = launcherScript(app); err != nil {
		return "", "", err
	}
	if node = c.node; node == "" {
		if node = runtimes.NodeOnPath(env.Getenv("PATH")); node == "" {
			return "", "", fault.WithHint(
				fault.Errorf(fault.MissingProgram, "%s needs Node.js, and there is no program called node on PATH", c.Installation.Describe()),
				"%s", addCommand(runtimes.Known))
		}
	}
	return node, script, nil
}

// launcherScript is the program that the launcher's package declares.
func launcherScript(app installation.Package) (string, error) {
	var m struct{ Bin json.RawMessage }
	err := json.Unmarshal(app.Manifest, &m)
	var script string
	if err == nil && json.Unmarshal(m.Bin, &script) != nil {
		var named map[string]string
		err = json.Unmarshal(m.Bin, &named)
		script = named["dsh"]
	}
	script = filepath.FromSlash(strings.TrimPrefix(script, "./"))
	if err != nil || script == "" || !filepath.IsLocal(script) {
		return "", fault.Errorf(fault.Package, "%s %s in %s declares no program dsh", app.Name, app.Version, app.Dir)
	}
	return filepath.Join(app.Dir, script), nil
}

// ChooseInstallation is the installation that a profile runs on: the one that
// option names, else the profile's own choice, the home's, the embedded one. The
// zero name is no profile.
func ChooseInstallation(env Env, name profile.Name, option string) (Choice, error) {
	if strings.TrimSpace(option) != "" {
		c, err := env.openChosen(option, true)
		c.By = ByOption
		return c, err
	}
	files := []struct {
		path string
		by   ChosenBy
	}{{runtimes.ChoicePath(env.Home, nil), ByHome}}
	if name != (profile.Name{}) {
		files = append(files[:0], struct {
			path string
			by   ChosenBy
		}{runtimes.ChoicePath(env.Home, &name), ByProfile}, files[0])
	}
	for _, file := range files {
		chosen, err := runtimes.ReadChoice(file.path)
		if err != nil {
			return Choice{}, err
		}
		if chosen == "" {
			continue
		}
		c, err := env.openChosen(chosen, false)
		if err != nil {
			back := []string{"dsh", "installation", "use", runtimes.Embedded}
			if file.by == ByProfile {
				back = append(back, "--profile", name.String())
			}
			if errors.Is(err, fs.ErrNotExist) {
				err = fault.Errorf(fault.Environment, "the installation %s, which %s names, is not there", chosen, file.path)
			}
			return Choice{}, fault.WithHint(err, "%s; or go on without it: %s", reinstallCommand(chosen), fault.ShellWords(back...))
		}
		c.By = file.by
		return c, nil
	}
	return Choice{Installation: installation.Embedded(), Name: runtimes.Embedded, By: ByNobody}, nil
}

// openChosen opens the installation of a name, or of a directory where that is
// allowed.
func (env Env) openChosen(text string, orDir bool) (Choice, error) {
	if text == runtimes.Embedded {
		return Choice{Installation: installation.Embedded(), Name: text}, nil
	}
	name, err := runtimes.ParseName(text)
	if err == nil {
		i, readErr := runtimes.Read(env.Home, name)
		if readErr == nil {
			c := Choice{Name: text, node: i.NodeProgram()}
			c.Installation, err = installation.OpenDir(i.Root())
			return c, err
		}
		err = readErr
	}
	if !orDir || name != (runtimes.Name{}) && !errors.Is(err, fs.ErrNotExist) {
		return Choice{}, err
	}
	dir := text
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(env.Dir, dir)
	}
	if name != (runtimes.Name{}) {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return Choice{}, fault.WithHint(fault.Errorf(fault.Environment, "there is no installation %s, and no directory of that name", text),
				"dsh installation list shows those that there are")
		}
	}
	c := Choice{Name: text}
	if i, err := runtimes.ReadIn(dir); err == nil { // one of a home by its directory
		dir, c.node = i.Root(), i.NodeProgram()
	}
	c.Installation, err = installation.OpenDir(dir)
	return c, err
}

// On is the environment in which commands on a profile run: with the
// installation that counts for it.
func (env Env) On(name profile.Name) (Env, error) {
	c, err := ChooseInstallation(env, name, env.Option)
	env.Installation = c.Installation
	return env, err
}

// OnEmbedded is the environment with the installation inside dsh.
func (env Env) OnEmbedded() Env {
	env.Installation = installation.Embedded()
	return env
}

// InstallationHint is the commands after which a profile runs on Node.js: on an
// installation that there is, the known one if possible, else on one to install.
func InstallationHint(env Env, name profile.Name) string {
	use := func(text string) string {
		return fault.ShellWords("dsh", "installation", "use", text, "--profile", name.String())
	}
	list, _, err := runtimes.List(env.Home)
	if err != nil || len(list) == 0 {
		return addCommand(runtimes.Known) + " && " + use(runtimes.Known)
	}
	best := list[len(list)-1]
	for _, i := range list {
		if i.Tested {
			best = i
		}
	}
	return use(best.Name.String())
}

// addCommand is the command that installs a release of the launcher.
func addCommand(version string) string {
	return fault.ShellWords("dsh", "installation", "add", runtimes.Launcher+"@"+version)
}

// reinstallCommand is the command that brings an installation of a name back.
func reinstallCommand(name string) string {
	words := []string{"dsh", "installation", "add", runtimes.Launcher + "@" + name, "--force"}
	if _, err := parseExact(name); err != nil {
		words = []string{"dsh", "installation", "add", runtimes.Launcher + "@" + runtimes.Known, "--name", name, "--force"}
	}
	return fault.ShellWords(words...)
}

// String is the choice in a few words for people.
func (c Choice) String() string {
	if c.By == ByNobody {
		return c.Name
	}
	who := map[ChosenBy]string{ByOption: "for this run", ByProfile: "chosen for the profile", ByHome: "chosen for the home"}[c.By]
	return fmt.Sprintf("%s (%s)", c.Name, who)
}
