// Records what commander makes of command lines of the launcher's grammar.
// Run where commander 14 is installed: node commander.mjs > commander.jsonl
import { Command, InvalidArgumentError } from 'commander'

function parse(argv) {
  let profiles = 0, patches = []
  const program = new Command('dsh')
    .helpOption(false).exitOverride().configureOutput({ writeErr() {}, writeOut() {} })
    .version('1', '-V, --version')
    .option('--profile <name>', '', (value) => {
      if (profiles++) throw new InvalidArgumentError('select a profile only once')
      return value
    })
    .option('--from-default-profile <name>')
    .option('--patch <path>', '', (value) => { patches.push(value); return patches })
    .option('--dump-config').option('--dump-config-schema').option('--dump-default-config')
    .argument('[args...]').allowUnknownOption().passThroughOptions().action(() => {})
  try {
    program.parse(argv, { from: 'user' })
  } catch (e) {
    if (e.code === 'commander.version') return { version: true }
    return { error: e.message }
  }
  const o = program.opts()
  return {
    profile: o.profile ?? null, template: o.fromDefaultProfile ?? null, patches,
    dumps: [!!o.dumpConfig, !!o.dumpDefaultConfig, !!o.dumpConfigSchema], args: program.args,
  }
}

const words = ['--profile', '--profile=x', '--profile=', 'x', '--patch', '--patch=a', '--patch=', 'a.yml', '--from-default-profile', '--from-default-profile=web',
  '--dump-config', '--dump-default-config', '--dump-config-schema', '--dump-config=1', '--', '-', '-h', '--help', '-V', '--version', '-Vx', '--version=1', '-x', '--bogus', '--bogus=1', '-xV', '', 'plugin', 'tui', '--profil', '--profile x', '---', '-=', '--=', 'ü']
let seed = 20251130
const random = (n) => { seed = (Math.imul(seed, 1103515245) + 12345) >>> 0; return (seed >>> 8) % n }
const seen = new Set()
const emit = (argv) => {
  const key = JSON.stringify(argv)
  // A first word without a dash never reaches commander as it is.
  if (seen.has(key) || (argv.length && !argv[0].startsWith('-'))) return
  seen.add(key)
  console.log(JSON.stringify({ argv, ...parse(argv) }))
}
emit([])
for (const a of words) { emit([a]); emit(['--profile', 'p', a]) }
while (seen.size < 1500) {
  const argv = Array.from({ length: 1 + random(6) }, () => words[random(words.length)])
  emit(random(2) ? ['--profile', 'p', ...argv] : argv)
}
