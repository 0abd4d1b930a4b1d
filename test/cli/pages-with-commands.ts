// The pages whose commands about a store are run by test/cli/pages.test.ts, each in the order in which it shows them.

/** Their paths, from the root of the repository. */
export const pagesWithCommands: readonly string[] = [
  'docs/guides/when-the-outcome-is-unknown.md',
  'docs/reference/commands.md',
]
