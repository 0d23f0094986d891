package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
)

// manager is a package manager. It works in a directory of its own, in which the home directory, the temporary directory and all caches are.
type manager struct {
	name     string
	variable string // of the environment, which says where its program is
	slow     bool
	project  string   // where package.json lies, below its directory
	lockfile string   // its name
	caches   []string // what else a cold install must not find, below its directory
	never    string   // a fixture that it cannot install
	files    func(dir string, f fixture) (map[string]string, error)
	environ  func(dir string) []string
	install  func(s scenario) []string
}

var managers = []manager{
	{
		name: "dsh", variable: "DSH_BENCH_DSH", project: "dsh/profiles/x", lockfile: "dsh-lock.yaml", caches: []string{"dsh/store", "dsh/state"},
		files: func(dir string, f fixture) (map[string]string, error) {
			profile := map[string]any{"bundles": []string{}}
			if f.Peers { // else packages of the harness are left to an installation of it, which the others do not know
				profile["hostPackages"] = "allow"
			}
			text, err := packageJSON(f, map[string]any{"dsh": map[string]any{"profile": profile}})
			return map[string]string{"package.json": text, "pnpm-workspace.yaml": fmt.Sprintf("packages:\n  - .\n\nnodeLinker: hoisted\nautoInstallPeers: %t\n", f.Peers)}, err
		},
		environ: func(dir string) []string { return []string{"DSH_HOME=" + filepath.Join(dir, "dsh")} },
		install: func(s scenario) []string {
			args := []string{"plugin", "--profile", "x", "install"}
			if s == frozen {
				args = append(args, "--frozen-lockfile")
			}
			return args
		},
	},
	{
		name: "bun", variable: "DSH_BENCH_BUN", project: "project", lockfile: "bun.lock", caches: []string{"cache"},
		files: func(dir string, f fixture) (map[string]string, error) {
			text, err := packageJSON(f, nil)
			return map[string]string{"package.json": text, "bunfig.toml": fmt.Sprintf("[install]\npeer = %t\n", f.Peers)}, err
		},
		environ: func(dir string) []string { return []string{"BUN_INSTALL_CACHE_DIR=" + filepath.Join(dir, "cache")} },
		install: func(s scenario) []string {
			args := []string{"install", "--ignore-scripts"}
			if s == frozen {
				args = append(args, "--frozen-lockfile")
			}
			return args
		},
	},
	pnpm("pnpm12", "DSH_BENCH_PNPM12", false),
	pnpm("pnpm10", "DSH_BENCH_PNPM10", true),
	{
		// npm's resolver does not finish on the tree of the harness within any time that can be waited for.
		name: "npm", variable: "DSH_BENCH_NPM", slow: true, never: "dsh", project: "project", lockfile: "package-lock.json", caches: []string{"cache"},
		files: func(dir string, f fixture) (map[string]string, error) {
			text, err := packageJSON(f, nil)
			return map[string]string{"package.json": text, ".npmrc": fmt.Sprintf("legacy-peer-deps=%t\n", !f.Peers)}, err
		},
		environ: func(dir string) []string { return []string{"npm_config_cache=" + filepath.Join(dir, "cache")} },
		install: func(s scenario) []string {
			verb := "install"
			if s == frozen {
				verb = "ci"
			}
			return []string{verb, "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"}
		},
	},
}

// pnpm is some version of pnpm. Its settings are in the workspace file, which all versions read.
func pnpm(name, variable string, slow bool) manager {
	return manager{
		name: name, variable: variable, slow: slow, project: "project", lockfile: "pnpm-lock.yaml", caches: []string{"store", "cache"},
		files: func(dir string, f fixture) (map[string]string, error) {
			text, err := packageJSON(f, nil)
			settings := "packages:\n  - .\n\nstoreDir: %q\ncacheDir: %q\nminimumReleaseAge: 0\nautoInstallPeers: %t\n"
			return map[string]string{
				"package.json":        text,
				"pnpm-workspace.yaml": fmt.Sprintf(settings, filepath.Join(dir, "store"), filepath.Join(dir, "cache"), f.Peers),
			}, err
		},
		environ: func(dir string) []string { return nil },
		install: func(s scenario) []string {
			args := []string{"install", "--ignore-scripts"}
			switch s {
			case cold: // its own number of connections makes name look-ups stall
				args = append(args, "--no-frozen-lockfile", "--network-concurrency=16")
			case warm:
				args = append(args, "--no-frozen-lockfile")
			case frozen:
				args = append(args, "--frozen-lockfile")
			}
			return args
		},
	}
}

// packageJSON is the manifest of a fixture, with what a manager wants in it besides.
func packageJSON(f fixture, more map[string]any) (string, error) {
	document := map[string]any{"name": "bench-" + f.Name, "version": "1.0.0", "private": true, "dependencies": f.Dependencies}
	maps.Copy(document, more)
	text, err := json.MarshalIndent(document, "", "  ")
	return string(text) + "\n", err
}
