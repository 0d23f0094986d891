// Judges a tree of node_modules without anything of dsh: Node.js itself is asked, from inside every package, whether what the package
// depends on is found, and npm's own ranges whether it is the right version.
//
//   node judge.mjs [--json] [--host PATTERN]... [--override NAME=VERSION]... DIRECTORY
//
// DIRECTORY has a package.json and node_modules. --host names packages that the harness provides, with * for any text: as peers they need
// not be there. --override says that who asks for NAME is to get VERSION, whatever the range. DSH_E2E_SEMVER is the node_modules directory
// in which the package semver is. Exit codes: 0 nothing found, 1 something found, 2 it could not be judged.
import { createRequire } from 'node:module'
import fs from 'node:fs'
import path from 'node:path'
import process from 'node:process'

function usage(problem) {
  process.stderr.write(`judge: ${problem}\n`)
  process.exit(2)
}

const hosts = []
const overrides = new Map()
const directories = []
let json = false
for (let args = process.argv.slice(2); args.length > 0;) {
  const arg = args.shift()
  if (arg === '--json') json = true
  else if (arg === '--host') hosts.push(pattern(args.shift() ?? usage('--host needs a pattern')))
  else if (arg === '--override') {
    const [, name, version] = /^(.+)=(.+)$/.exec(args.shift() ?? '') ?? usage('--override needs NAME=VERSION')
    overrides.set(name, version)
  } else if (arg.startsWith('-')) usage(`there is no flag ${arg}`)
  else directories.push(arg)
}
if (directories.length !== 1) usage('one directory is judged at a time')
if (!process.env.DSH_E2E_SEMVER) usage('DSH_E2E_SEMVER is not set')
const semver = createRequire(path.join(process.env.DSH_E2E_SEMVER, 'x.js'))('semver')

function pattern(text) {
  return new RegExp('^' + text.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('.*') + '$')
}

const root = fs.realpathSync(directories[0])
const inside = (file) => file === root || file.startsWith(root + path.sep)
const shown = (file) => path.relative(root, file).split(path.sep).join('/') || '.'
const report = { packages: 0, edges: 0, findings: [] }
const found = (kind, text) => report.findings.push({ kind, text })

function readManifest(folder) {
  return JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8').replace(/^\uFEFF/, ''))
}

// foldersIn lists the folders below a node_modules directory that are packages: its entries, those of scopes, and those of the
// directories in which some managers keep what they link to.
function foldersIn(modules) {
  if (!fs.existsSync(modules)) return []
  const folders = []
  for (const entry of fs.readdirSync(modules, { withFileTypes: true })) {
    const at = path.join(modules, entry.name)
    if (entry.name === '.pnpm' || entry.name === '.bun') {
      for (const each of fs.readdirSync(at)) folders.push(...foldersIn(path.join(at, each, 'node_modules')))
    } else if (entry.name.startsWith('.') || entry.isFile()) {
      continue
    } else if (entry.name.startsWith('@')) {
      folders.push(...fs.readdirSync(at).map((name) => path.join(at, name)))
    } else {
      folders.push(at)
    }
  }
  return folders
}

const manifests = new Map() // by real folder
function visit(folder) {
  let real
  try {
    real = fs.realpathSync(folder)
  } catch {
    found('tree', `${shown(folder)} is a link to nothing`)
    return
  }
  // What a link leads to outside of the tree was installed by somebody else.
  if (manifests.has(real) || !inside(real)) return
  let manifest
  try {
    manifest = readManifest(real)
  } catch (error) {
    found('tree', `${shown(real)} is no package: ${error.message}`)
    return
  }
  manifests.set(real, manifest)
  for (const nested of foldersIn(path.join(real, 'node_modules'))) visit(nested)
}

// resolve finds the folder of a package as Node.js finds it from another.
function resolve(from, name) {
  const require = createRequire(path.join(from, 'package.json'))
  const wanted = name + '/package.json'
  let folder
  for (const modules of require.resolve.paths(wanted) ?? []) {
    if (fs.existsSync(path.join(modules, name, 'package.json'))) {
      folder = fs.realpathSync(path.join(modules, name))
      break
    }
  }
  // A package may keep its manifest to itself, or the file of another folder may go by that name. But whatever Node.js finds is in the same package.
  let file
  try {
    file = require.resolve(wanted)
  } catch (error) {
    if (error.code === 'MODULE_NOT_FOUND' && folder !== undefined && !hasExports(folder)) {
      return { problem: `is not found by Node.js, though it is at ${shown(folder)}` }
    }
  }
  if (file !== undefined && folder !== undefined && !fs.realpathSync(file).startsWith(folder + path.sep)) {
    return { problem: `is found by Node.js at ${shown(file)}, and not at ${shown(folder)}` }
  }
  return { folder }
}

function hasExports(folder) {
  return readManifest(folder).exports !== undefined
}

// judgeEdge says what is wrong with one dependency, and nothing if nothing is.
function judgeEdge(from, name, spec, mayBeAbsent) {
  const { folder, problem } = resolve(from, name)
  if (problem) return problem
  if (folder === undefined) return mayBeAbsent ? undefined : 'is not there'
  if (!inside(folder) && !linkedFrom(name)) return `is found outside, at ${folder}`
  const there = manifests.get(folder) ?? readManifest(folder)
  const wanted = overrides.get(name) ?? spec
  const alias = /^npm:((?:@[^/]+\/)?[^@]+)(?:@(.*))?$/.exec(wanted)
  if (alias && there.name !== alias[1]) return `is ${there.name}@${there.version}`
  const range = alias ? alias[2] ?? '' : wanted
  if (semver.validRange(range, true) === null) return undefined // a tag, an address or a folder
  if (range.trim() === '' || range.trim() === '*' || semver.satisfies(there.version, range, true)) return undefined
  return `is ${there.version} at ${shown(folder)}`
}

// linkedFrom reports whether the tree itself has a link by that name that leads out of it.
function linkedFrom(name) {
  try {
    return fs.lstatSync(path.join(root, 'node_modules', name)).isSymbolicLink()
  } catch {
    return false
  }
}

function judge(folder, manifest) {
  const edges = []
  const optional = manifest.optionalDependencies ?? {}
  for (const [name, spec] of Object.entries(optional)) edges.push(['optional', name, spec])
  for (const [name, spec] of Object.entries(manifest.dependencies ?? {})) {
    if (!(name in optional)) edges.push(['dependency', name, spec])
  }
  for (const [name, spec] of Object.entries(manifest.peerDependencies ?? {})) {
    const also = name in optional || name in (manifest.dependencies ?? {})
    const host = hosts.some((one) => one.test(name))
    if (!also && !host && !manifest.peerDependenciesMeta?.[name]?.optional) edges.push(['peer', name, spec])
  }
  for (const [kind, name, spec] of edges) {
    report.edges++
    const problem = judgeEdge(folder, name, spec, kind === 'optional')
    if (problem) found(kind, `${folder === root ? "the project" : `${manifest.name}@${manifest.version} (${shown(folder)})`} asks for ${kind === 'dependency' ? '' : kind + ' '}${name} ${spec}, which ${problem}`)
  }
}

try {
  visit(root)
  for (const [folder, manifest] of manifests) judge(folder, manifest)
} catch (error) {
  usage(error.stack)
}
report.packages = manifests.size - 1
report.findings.sort((a, b) => (a.text < b.text ? -1 : 1))
if (json) process.stdout.write(JSON.stringify(report, null, 1) + '\n')
else {
  for (const one of report.findings) process.stdout.write(one.text + '\n')
  process.stdout.write(`${report.packages} packages, ${report.edges} dependencies, ${report.findings.length} findings\n`)
}
process.exitCode = report.findings.length > 0 ? 1 : 0
