package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/store"
	"dsh/internal/installation"
	"dsh/internal/profile"
	"dsh/internal/runtimes"
	"dsh/internal/staging"
)

// InstallationList is the installations of a home.
type InstallationList struct {
	Installations []InstallationInfo `json:"installations"`
	// Embedded are the profiles that chose the one inside dsh; Default says that
	// it counts where a profile chose nothing.
	Embedded struct {
		Default  bool     `json:"default"`
		Profiles []string `json:"profiles"`
	} `json:"embedded"`
	Warnings []string `json:"-"`
}

// ListInstallations lists what there is to run profiles on.
func ListInstallations(env Env) (*InstallationList, error) {
	installed, broken, err := runtimes.List(env.Home)
	if err != nil {
		return nil, err
	}
	uses, err := env.installationUses()
	if err != nil {
		return nil, err
	}
	list := &InstallationList{Installations: []InstallationInfo{}}
	for _, err := range broken {
		list.Warnings = append(list.Warnings, err.Error())
	}
	for _, i := range installed {
		list.Installations = append(list.Installations, uses.info(i))
	}
	list.Embedded.Default = uses.home == "" || uses.home == runtimes.Embedded
	list.Embedded.Profiles = append([]string{}, uses.profiles[runtimes.Embedded]...)
	return list, nil
}

// installationUses is who chose what.
type installationUses struct {
	home     string
	profiles map[string][]string // sorted, by installation
}

func (env Env) installationUses() (uses installationUses, err error) {
	uses.profiles = map[string][]string{}
	if uses.home, err = runtimes.ReadChoice(runtimes.ChoicePath(env.Home, nil)); err != nil {
		return uses, err
	}
	states, err := env.Home.States()
	if err != nil {
		return uses, err
	}
	for _, name := range states {
		chosen, err := runtimes.ReadChoice(runtimes.ChoicePath(env.Home, &name))
		if err == nil && chosen != "" && env.mayStart(name) {
			uses.profiles[chosen] = append(uses.profiles[chosen], name.String())
		}
	}
	return uses, nil
}

// mayStart says whether a profile is there, or is made when it is started.
func (env Env) mayStart(name profile.Name) bool {
	_, err := profile.LookupTemplate(name.String())
	return err == nil || exists(env.Home.ProfileDir(name))
}

func (u installationUses) info(i *runtimes.Installed) InstallationInfo {
	info := InstallationInfo{
		Name: i.Name.String(), Version: i.Launcher, Dir: i.Root(), Tested: i.Tested, Node: i.Node,
		Default: u.home == i.Name.String(), Profiles: append([]string{}, u.profiles[i.Name.String()]...),
	}
	info.Node.Program = i.NodeProgram()
	return info
}

// UsedInstallation says what [UseInstallation] did.
type UsedInstallation struct {
	Installation string `json:"installation"`
	Profile      string `json:"profile,omitempty"` // "" is all that chose nothing themselves
	Unset        bool   `json:"unset"`             // the choice was taken away
}

// UseInstallation makes an installation, or the embedded one, what a profile
// runs on; of no profile, what all run on that chose nothing. An empty choice
// takes the earlier one away.
func UseInstallation(ctx context.Context, env Env, name *profile.Name, chosen string) (*UsedInstallation, error) {
	done := &UsedInstallation{Installation: chosen, Unset: chosen == ""}
	if name != nil {
		done.Profile = name.String()
		// A shipped profile is made when it is first started.
		if _, err := profile.LookupTemplate(name.String()); err != nil {
			if err := env.there(*name); err != nil {
				return nil, err
			}
		}
	}
	if chosen != "" && chosen != runtimes.Embedded {
		i, err := env.installed(chosen)
		if err != nil {
			return nil, err
		}
		if _, err := installation.OpenDir(i.Root()); err != nil {
			return nil, fault.WithHint(err, "%s", reinstallCommand(chosen))
		}
	}
	// What is chosen is looked at by whoever removes installations.
	lock, err := env.acquire(ctx, env.Home.Path("state", installationLock))
	if err != nil {
		return nil, env.unwritable(err)
	}
	err = runtimes.WriteChoice(runtimes.ChoicePath(env.Home, name), chosen)
	if err = errors.Join(err, lock.Release()); err != nil {
		return nil, env.unwritable(err)
	}
	return done, nil
}

// installationLock is held while choices and the installations that they name
// change.
const installationLock = "installations.lock"

// installed is an installation of the home, which has to be there.
func (env Env) installed(text string) (*runtimes.Installed, error) {
	name, err := runtimes.ParseName(text)
	if err != nil {
		return nil, err
	}
	i, err := runtimes.Read(env.Home, name)
	if errors.Is(err, fs.ErrNotExist) {
		list, _, listErr := runtimes.List(env.Home)
		if listErr != nil {
			return nil, listErr
		}
		err := fault.Errorf(fault.Other, "there is no installation %s", name)
		if len(list) == 0 {
			return nil, fault.WithHint(err, "%s makes one", addCommand(runtimes.Known))
		}
		return nil, fault.WithHint(err, "dsh installation list shows those that there are")
	}
	return i, err
}

// RemovedInstallation says what [RemoveInstallation] did.
type RemovedInstallation struct {
	Name string `json:"name"`
	// Freed are the profiles that chose it, which chose nothing any more; Home
	// says the same of the home.
	Freed []string `json:"freed"`
	Home  bool     `json:"home"`
}

// RemoveInstallation removes an installation from the home. One that is used is
// removed only with force, and the choices of it with it. A directory that
// another tool made stays.
func RemoveInstallation(ctx context.Context, env Env, text string, force bool) (done *RemovedInstallation, err error) {
	name, err := runtimes.ParseName(text)
	if err != nil {
		return nil, err
	}
	if _, err := runtimes.Read(env.Home, name); errors.Is(err, fs.ErrNotExist) {
		_, err = env.installed(text)
		return nil, err
	}
	lock, err := env.acquire(ctx, env.Home.Path("state", installationLock))
	if err != nil {
		return nil, env.unwritable(err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	uses, err := env.installationUses()
	if err != nil {
		return nil, err
	}
	done = &RemovedInstallation{Name: text, Freed: append([]string{}, uses.profiles[text]...), Home: uses.home == text}
	if !force && (done.Home || len(done.Freed) > 0) {
		who := strings.Join(done.Freed, ", ")
		switch {
		case who == "":
			who = "the home"
		case done.Home:
			who = "the home and " + who
		}
		return nil, fault.WithHint(fault.Errorf(fault.Other, "the installation %s is used by %s; nothing was changed", name, who),
			"%s takes it away from them as well", fault.ShellWords("dsh", "installation", "remove", text, "--force"))
	}
	for _, profileText := range done.Freed {
		profileName, err := profile.ParseName(profileText)
		if err != nil {
			return nil, err
		}
		if err := runtimes.WriteChoice(runtimes.ChoicePath(env.Home, &profileName), ""); err != nil {
			return nil, env.unwritable(err)
		}
	}
	if done.Home {
		if err := runtimes.WriteChoice(runtimes.ChoicePath(env.Home, nil), ""); err != nil {
			return nil, env.unwritable(err)
		}
	}
	temp, remove, err := staging.TempDir(runtimes.Dir(env.Home))
	if err != nil {
		return nil, env.unwritable(fault.WithClass(fault.Environment, err))
	}
	err = staging.SetAside(runtimes.DirOf(env.Home, name), filepath.Join(temp, "old"), runtimes.RecordName)
	if err = errors.Join(err, remove()); err != nil {
		return nil, env.unwritable(err)
	}
	return done, nil
}

// CheckedInstallation is what is wrong with an installation.
type CheckedInstallation struct {
	InstallationInfo
	Problems []string `json:"problems"`
}

// CheckInstallations looks whether installations are whole and run: all of the
// home, or one.
func CheckInstallations(ctx context.Context, env Env, text string) ([]CheckedInstallation, error) {
	var list []*runtimes.Installed
	checked := []CheckedInstallation{}
	if text != "" {
		i, err := env.installed(text)
		if err != nil {
			return nil, err
		}
		list = append(list, i)
	} else {
		var broken []error
		var err error
		if list, broken, err = runtimes.List(env.Home); err != nil {
			return nil, err
		}
		for _, err := range broken {
			checked = append(checked, CheckedInstallation{InstallationInfo{Profiles: []string{}}, []string{err.Error()}})
		}
	}
	uses, err := env.installationUses()
	if err != nil {
		return nil, err
	}
	packages := store.Open(env.Home.StoreDir())
	for _, i := range list {
		c := CheckedInstallation{uses.info(i), []string{}}
		problem := func(format string, args ...any) { c.Problems = append(c.Problems, fmt.Sprintf(format, args...)) }
		env.checkFiles(i, packages, problem)
		env.checkPrograms(ctx, i, problem)
		if ctx.Err() != nil {
			return nil, errors.Join(context.Cause(ctx), packages.Close())
		}
		checked = append(checked, c)
	}
	return checked, packages.Close()
}

// checkFiles holds what dsh laid out against the store, and looks for the
// packages that the launcher asks for.
func (env Env) checkFiles(i *runtimes.Installed, packages *store.Store, problem func(string, ...any)) {
	if i.Directory == "" {
		file := filepath.Join(i.Dir, install.LockName)
		lock := readableLock(file)
		if lock == nil {
			problem("%s is not there, or cannot be read", file)
		} else if damaged, err := install.Damaged(i.Dir, "", lock, packages); err != nil {
			problem("the packages: %v", err)
		} else if len(damaged) > 0 {
			problem("not as they were installed: %s", placesInWords(damaged))
		}
	}
	if id, err := store.ParseIntegrity(i.Node.Integrity); i.Node.Integrity != "" && err == nil {
		if entry, ok := packages.Get(id); ok {
			if whole, err := entry.Stands(filepath.Join(i.Dir, "node"), false); err != nil || !whole {
				problem("Node.js is not as it was installed")
			}
		}
	}
	inst, err := installation.OpenDir(i.Root())
	if err != nil {
		problem("%v", err)
		return
	}
	app, _ := installation.Launcher(inst)
	if app.Version != i.Launcher {
		problem("the launcher is %s, and was %s when it was added", app.Version, i.Launcher)
	}
	var m struct{ Dependencies map[string]string }
	if err := json.Unmarshal(app.Manifest, &m); err != nil {
		problem("%s: %v", filepath.Join(app.Dir, mainFile), err)
	}
	var missing []string
	for name := range m.Dependencies {
		if _, ok, err := inst.Bundle(name); err != nil || !ok {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		problem("the launcher asks for packages that are not there: %s", strings.Join(missing, ", "))
	}
}

// checkPrograms runs Node.js, and the launcher on it.
func (env Env) checkPrograms(ctx context.Context, i *runtimes.Installed, problem func(string, ...any)) {
	node := i.NodeProgram()
	version, err := runtimes.NodeVersion(ctx, node, env.Getenv)
	if err != nil {
		problem("%v", err)
		return
	}
	inst, err := installation.OpenDir(i.Root())
	if err != nil {
		return // that was said
	}
	app, _ := installation.Launcher(inst)
	wanted, err := runtimes.NodeRange(app.Manifest)
	if release, known := runtimes.FindRelease(i.Launcher); known == nil && release.Tested() {
		wanted = release.Node
	}
	if err == nil {
		var fits bool
		if fits, err = runtimes.FitsNode(wanted, version); err == nil && !fits {
			problem("%s is Node.js %s, and the launcher needs %s", node, version, wanted)
			return
		}
	}
	if err != nil {
		problem("%v", err)
	}
	script, err := launcherScript(app)
	if err != nil {
		problem("%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, script, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if text := strings.TrimSpace(string(out)); err != nil || text != app.Version {
		why := fmt.Sprintf("it says %q", text)
		if err != nil {
			why = err.Error()
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
				why += ": " + strings.TrimSpace(string(exit.Stderr))
			}
		}
		problem("the launcher does not tell its version %s: %s", app.Version, why)
	}
}

// RenewCommand is the command that makes an installation anew.
func RenewCommand(i InstallationInfo) string {
	source := runtimes.Launcher + "@" + i.Version
	if dir := i.Dir; filepath.Base(filepath.Dir(dir)) != "installations" {
		source = dir // another tool has to mend what is in there
	}
	words := []string{"dsh", "installation", "add", source}
	if i.Name != i.Version {
		words = append(words, "--name", i.Name)
	}
	return fault.ShellWords(append(words, "--force")...)
}
