// Says of each document on standard input, [{schema, document}], whether ajv takes it by the official schema of that name.
const [, , modules] = process.argv
const Ajv = require(modules + '/ajv/dist/2020').default
const ajv = new Ajv()
const validators = {}
for (const name of ['plugin', 'mcp']) validators[name] = ajv.compile(require(`./${name}-1.0.0.schema.json`))
const cases = JSON.parse(require('fs').readFileSync(0, 'utf8'))
process.stdout.write(JSON.stringify(cases.map(({ schema, document }) => validators[schema](document))))
