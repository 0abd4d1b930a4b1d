#!/usr/bin/env node
// The one script behind every npm command: `node tools/run.mjs <command> [arguments]`.
//
// It depends on nothing but Node, so it works on a fresh clone: it installs, builds and then does the work.
// The version is looked at before anything else is loaded, so that an old Node gets a sentence and not a syntax error.

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Reprise needs Node 20.19 or newer; this is Node ${process.versions.node}.`)
  if (process.argv[2] === 'test') console.log('0 passed, 1 failed, 0 skipped')
  process.exitCode = 1
} else {
  import('./commands.mjs').then(async ({ main }) => {
    process.exitCode = await main(process.argv.slice(2))
  })
}
