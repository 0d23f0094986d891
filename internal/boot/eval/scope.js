// Makes the scope of an expression: the globals process, ctx and dshHomePath,
// and one for each service. The result writes the value of the expression as
// JSON; undefined for undefined.
(function (text, dshHomePath) {
  'use strict'
  const {env, platform, cwd, services, undefined: missing} = JSON.parse(text)
  const {freeze, create, defineProperty} = Object
  const stringify = JSON.stringify

  const deepFreeze = (value) => {
    if (typeof value === 'object' && value !== null) {
      Object.values(value).forEach(deepFreeze)
      freeze(value)
    }
    return value
  }
  const define = (name, value) => {
    defineProperty(globalThis, name, {value, writable: false, enumerable: false, configurable: false})
  }

  // Case does not matter in the names of variables on Windows.
  const variables = () => {
    const names = new Map(Object.keys(env).map((name) => [name.toUpperCase(), name]))
    const real = (name) => (typeof name === 'string' && names.get(name.toUpperCase())) || name
    return new Proxy(env, {
      get: (target, name) => target[real(name)],
      has: (target, name) => real(name) in target,
      getOwnPropertyDescriptor: (target, name) => Object.getOwnPropertyDescriptor(target, real(name)),
    })
  }
  deepFreeze(env)
  define('process', freeze({env: platform === 'win32' ? variables() : env, platform, cwd: () => cwd}))

  const ctx = create(null)
  const all = {...services, dshHomePath}
  for (const name of missing ?? []) all[name] = undefined
  for (const [name, value] of Object.entries(all)) {
    ctx[name] = deepFreeze(value)
    if (name !== 'globalThis' && name !== 'undefined' && name !== 'NaN' && name !== 'Infinity') define(name, ctx[name])
  }
  define('ctx', freeze(Object.assign(create(null), {get: (name) => (name === 'get' ? undefined : ctx[name])}, ctx)))

  const kind = (value) => {
    switch (typeof value) {
      case 'function': case 'symbol': case 'bigint':
        return `a ${typeof value}`
      case 'number':
        return Number.isFinite(value) ? '' : String(value)
      case 'object':
        return value instanceof Promise ? 'a promise' : ''
      default:
        return ''
    }
  }
  return (value) => stringify(value, function (key, written) {
    const what = kind(this[key]) || kind(written)
    if (what !== '') throw new TypeError((key === '' ? 'the value' : `the value at ${key}`) + ` is ${what}, which a config cannot hold`)
    return written
  })
})
