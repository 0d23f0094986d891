# shellcheck shell=bash
# Installs outside programs for e2e/external/run and e2e/bench/run, which source this file from bash with `set -euo pipefail`. It needs
# go, npm and node 20 or newer on PATH, and the npm registry. What is installed goes to
# ${DSH_E2E_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dsh-e2e}, one folder for each tool and version.

node_version=24.21.0
pnpm_version=10.34.9
semver_version=7.8.6

say() { printf 'e2e: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

cache=${DSH_E2E_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dsh-e2e}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd -P)

if ! command -v npm >/dev/null && [ "$(id -u)" = 0 ] && [ "${CI:-}" = true ] && command -v apt-get >/dev/null; then
	say "installing nodejs and npm with apt-get"
	apt-get update -qq </dev/null >/dev/null
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq nodejs npm </dev/null >/dev/null
fi
command -v go >/dev/null || die "go is not on PATH: install Go (https://go.dev/dl/)"
command -v node >/dev/null || die "node is not on PATH: install Node.js 20 or newer"
command -v npm >/dev/null || die "npm is not on PATH: install npm (it comes with Node.js)"
[ "$(node -p 'Number(process.versions.node.split(".")[0]) >= 20')" = true ] || die "node is $(node -v), but 20 or newer is needed"

staging=
trap '[ -z "$staging" ] || rm -rf "$staging"' EXIT
find "$cache" -maxdepth 1 -name '.staging-*' -mtime +0 -exec rm -rf {} +

# tool FOLDER BUILD CHECK: makes $cache/FOLDER by calling BUILD in a folder beside it, which gets its name only when CHECK succeeds there.
tool() {
	[ -d "$cache/$1" ] && return
	say "installing $1"
	staging=$(mktemp -d "$cache/.staging-XXXXXX")
	(cd "$staging" && "$2" </dev/null >install.log 2>&1) || { tail -n 40 "$staging/install.log" >&2; die "installing $1 failed"; }
	(cd "$staging" && "$3" </dev/null >>install.log 2>&1) || { tail -n 40 "$staging/install.log" >&2; die "$1 was installed but does not work"; }
	# A rename onto a folder that another run made in the meantime fails, and that folder is as good.
	node -e 'require("fs").renameSync(process.argv[1], process.argv[2])' "$staging" "$cache/$1" 2>/dev/null || [ -d "$cache/$1" ] || die "cannot make $cache/$1"
	rm -rf "$staging"
	staging=
}

npm_install() { npm install --no-audit --no-fund --no-update-notifier; }

build_node() {
	echo '{"private": true, "dependencies": {"node": "'$node_version'"}, "allowScripts": {"node": true}}' >package.json
	npm_install
}
check_node() { [ "$(node_modules/node/bin/node --version)" = "v$node_version" ]; }
node_dir=node-$node_version

build_pnpm() {
	echo '{"private": true, "dependencies": {"pnpm": "'$pnpm_version'"}}' >package.json
	npm_install
}
check_pnpm() { [ "$(node_modules/.bin/pnpm --version)" = "$pnpm_version" ]; }
pnpm_dir=pnpm-$pnpm_version

# The ranges of e2e/judge, which shares none with dsh.
build_semver() {
	echo '{"private": true, "dependencies": {"semver": "'$semver_version'"}}' >package.json
	npm_install
}
check_semver() { [ "$(node_modules/.bin/semver 1.2.3-rc.1 --include-prerelease --range '>=1.0.0')" = 1.2.3-rc.1 ]; }
semver_dir=semver-$semver_version
