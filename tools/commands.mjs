// The commands behind npm's scripts. Each names what must be ready before it runs; then it does its work.

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ensureBuilt, ensureExamplesBuilt } from './build.mjs'
import { ensureInstalled } from './install.mjs'
import { nodeVersions, otherNode } from './node-versions.mjs'
import { packageScript, Refusal, run, runNode, say } from './process.mjs'

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/[/\\]$/, '')

/** Serves the sample service. */
async function start() {
  const compiled = await ensureExamplesBuilt(root)
  return (await import('./serve.mjs')).serve(compiled)
}

/**
 * Runs every example that tells a story, in the order of its name, and shows what it prints: programs, and folders with a
 * `story.ts`. With a name it runs that one alone, with the arguments behind it.
 * @type {(args: readonly string[]) => Promise<number>}
 */
async function examples([wanted, ...rest]) {
  const names = readdirSync(join(root, 'examples'), { withFileTypes: true })
    .filter((entry) =>
      entry.isFile() ? /\.(ts|mjs)$/.test(entry.name) : existsSync(join(root, 'examples', entry.name, 'story.ts')),
    )
    .map((entry) => entry.name)
    .sort()
  const bare = (/** @type {string} */ name) => name.replace(/\.(ts|mjs)$/, '')
  const named = names.find((name) => bare(name) === wanted)
  if (wanted !== undefined && named === undefined) {
    throw new Refusal(`There is no example named ${wanted}; there are ${names.map(bare).join(', ')}.`, 2)
  }
  const compiled = await ensureExamplesBuilt(root)
  const scriptOf = (/** @type {string} */ name) => {
    if (name.endsWith('.mjs')) return join(root, 'examples', name)
    return join(compiled, name.endsWith('.ts') ? name.replace(/\.ts$/, '.js') : join(name, 'story.js'))
  }
  if (named !== undefined) return (await runNode(scriptOf(named), rest, { cwd: root })).code
  const failed = []
  for (const name of names) {
    console.log(`\n── examples/${name} ${'─'.repeat(Math.max(3, 60 - name.length))}\n`)
    const { code, signal } = await runNode(scriptOf(name), [], { cwd: root })
    if (signal !== null) return code
    if (code !== 0) failed.push(name)
  }
  console.log(`\n${names.length - failed.length} of ${names.length} examples ran to their end.`)
  if (failed.length > 0) say(`failed: ${failed.join(', ')}`)
  return failed.length > 0 || names.length === 0 ? 1 : 0
}

/** @type {(args: readonly string[]) => Promise<number>} */
async function bench(args) {
  const { major, rest } = nodeAskedFor(args)
  const node = major === undefined ? { binary: process.execPath } : await otherNode(root, major)
  if ('why' in node) throw new Refusal(`Node ${major} cannot be used: ${node.why}.`)
  await ensureInstalled(root, join(root, 'bench'))
  // Newer majors of the peers, which older Nodes cannot run.
  const running = major ?? Number.parseInt(process.versions.node, 10)
  if (running >= 22) await ensureInstalled(root, join(root, 'bench', 'newest'))
  return (await run(node.binary, [join(root, 'bench', 'run.mjs'), ...rest], { cwd: root })).code
}

/**
 * `--node 24` asks for another Node than this one.
 * @param {readonly string[]} args
 * @returns {{ major: number | undefined, rest: readonly string[] }}
 */
function nodeAskedFor(args) {
  const place = args.findIndex((arg) => arg === '--node' || arg.startsWith('--node='))
  if (place < 0) return { major: undefined, rest: args }
  const [text, taken] = args[place] === '--node' ? [args[place + 1], 2] : [args[place]?.slice('--node='.length), 1]
  const majors = nodeVersions(root)
  const major = majors.find((known) => String(known) === text)
  if (major === undefined) throw new Refusal(`--node takes one of ${majors.join(', ')}.`, 2)
  return { major, rest: args.toSpliced(place, taken) }
}

/** @type {(args: readonly string[]) => Promise<number>} */
async function peers(args) {
  const folder = join(root, 'bench', 'http-peers')
  await ensureInstalled(root, folder)
  await (await import('./sqlite-drivers.mjs')).ensureSqliteDrivers(root)
  return (await runNode(join(folder, 'run.mjs'), args, { cwd: root })).code
}

/** @type {(args: readonly string[]) => Promise<number>} */
async function format(args) {
  const paths = args.length > 0 ? args : ['.']
  return (await runNode(packageScript(root, '@biomejs/biome'), ['check', '--write', ...paths], { cwd: root })).code
}

/**
 * @typedef {object} Command
 * @property {string} does one line
 * @property {boolean} build whether dist must be there first
 * @property {true} [alone] it takes no arguments; default: it reads them itself
 * @property {(args: readonly string[]) => Promise<number>} run the answer is the exit code
 */

/** @type {Record<string, Command>} */
const commands = {
  start: { does: 'runs the sample service, examples/payments', build: true, alone: true, run: start },
  examples: { does: 'runs the other examples and shows their output; a name chooses one', build: true, run: examples },
  test: {
    does: 'runs the tests of the library; arguments go to vitest',
    build: true,
    run: async (args) => (await import('./test.mjs')).test(root, args),
  },
  'test:tools': {
    does: 'runs the tests of these tools; --if-changed: unless they have passed on the same files',
    build: true,
    run: async (args) => (await import('./test-tools.mjs')).testTools(root, args),
  },
  check: {
    does: 'format, lint, types, dependencies, dead code, packaging, sizes, tidy; --list names them',
    build: false,
    run: async (args) => (await import('./check.mjs')).check(root, args),
  },
  bench: { does: 'measures against peers; arguments choose a part', build: true, run: bench },
  peers: { does: 'runs the HTTP cases against other layers; arguments choose them', build: true, run: peers },
  walk: {
    does: 'counts the files and functions that one call enters; --json, --verbose',
    build: true,
    run: async (args) => (await import('./walk/walk.mjs')).walk(root, args),
  },
  fuzz: {
    does: 'throws generated inputs at every parser',
    build: true,
    run: async (args) => (await runNode(join(root, 'test', 'fuzz', 'run.mjs'), args, { cwd: root })).code,
  },
  torture: {
    does: 'the long fault runs on real servers and processes; --engine, --seconds, --seed, --json',
    build: false,
    run: async (args) => (await import('./torture.mjs')).torture(root, args),
  },
  build: { does: 'builds dist when sources changed', build: true, alone: true, run: async () => 0 },
  format: { does: 'formats every file and applies safe fixes', build: false, run: format },
  docs: {
    does: 'writes the API reference into docs/reference/api',
    build: false,
    alone: true,
    run: async () => (await import('./api-reference.mjs')).writeApiReference(root),
  },
  'test:matrix': {
    does: 'runs the tests on other Node versions',
    build: true,
    run: async (args) => (await import('./matrix.mjs')).matrix(root, args),
  },
}

function help() {
  const lines = Object.entries(commands).map(([name, command]) => `  ${name.padEnd(12)} ${command.does}`)
  return `node tools/run.mjs <command> [arguments]\n\n${lines.join('\n')}`
}

/** @param {readonly string[]} argv @returns {Promise<number>} the exit code */
export async function main([name, ...args]) {
  if (name === '--help' || name === '-h') {
    console.log(help())
    return 0
  }
  const command = name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command === undefined) {
    say(`${name === undefined ? 'Which command?' : `There is no command "${name}".`}\n\n${help()}`)
    return 2
  }
  if (command.alone && args.length > 0) {
    say(`The command ${name} takes no arguments, and was given ${args.join(' ')}.`)
    return 2
  }
  try {
    // A command that runs inside another one, as in the tests of these tools, finds everything ready.
    if (process.env['REPRISE_READY'] !== root) {
      await ensureInstalled(root)
      if (command.build) await ensureBuilt(root)
      process.env['REPRISE_READY'] = root
    }
    return await command.run(args)
  } catch (error) {
    say(error instanceof Refusal ? error.message : String(/** @type {Error} */ (error).stack ?? error))
    // The closing line holds here too: something that should have passed did not.
    if (name?.startsWith('test') && name !== 'test:matrix') console.log('0 passed, 1 failed, 0 skipped')
    return error instanceof Refusal ? error.exitCode : 1
  }
}
