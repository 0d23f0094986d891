// The plugin that the row "hello" of cordis.patch.yml starts. The harness calls apply with a context and the row's config.
export const name = 'hello'

export function apply(ctx, config) {
  console.error(`${config.greeting}, ${config.who}!`)
}
