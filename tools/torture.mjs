// `npm run torture`: the long fault runs on real servers and processes. The options are read here; the sources of the
// run, in test/torture, are bundled and run with this Node.

import { randomInt, randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Refusal, runNode } from './process.mjs'
import { ensureServers, serversNamed } from './servers.mjs'

/** Each part, and the source of its worker. @type {Readonly<Record<string, string>>} */
const parts = { operations: 'operations/worker.ts', messaging: 'messaging/worker.ts' }

/** Each engine, and the servers it needs. @type {Readonly<Record<string, readonly string[]>>} */
const engines = { postgres: ['PostgreSQL'], pgbouncer: ['PostgreSQL', 'PgBouncer'], sqlite: [] }

const usage = `usage: npm run torture -- <${Object.keys(parts).join(', ')}> [options]
  --engine NAME  one of ${Object.keys(engines).join(', ')}; may be given several times (default: all)
  --seconds N    how long each engine is worked on (default 60)
  --messages N   of messaging: until so many messages were emitted, in place of the seconds; whole load: 1000000
  --keys N       of messaging: over how many keys (default 300; with --messages 10000)
  --seed TEXT    draw the same faults again (default: drawn, and told)
  --json         nothing but one JSON line for each engine
  --plant NAME   plant a bug, to see that it is found`

/** @param {string} line @returns {never} */
function refuse(line) {
  throw new Refusal(`${line}\n${usage}`, 2)
}

/** @param {readonly string[]} args */
function read(args) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        engine: { type: 'string', multiple: true, default: Object.keys(engines) },
        seconds: { type: 'string', default: '60' },
        messages: { type: 'string' },
        keys: { type: 'string' },
        seed: { type: 'string', default: String(randomInt(1e9)) },
        json: { type: 'boolean', default: false },
        plant: { type: 'string' },
      },
    })
  } catch (error) {
    return refuse(/** @type {Error} */ (error).message)
  }
}

/** @param {string} option @param {string | undefined} given */
function wholeOf(option, given) {
  if (given === undefined) return undefined
  const value = Number(given)
  if (!(Number.isInteger(value) && value >= 1 && value <= 1e9)) refuse(`--${option} takes a whole number from 1.`)
  return value
}

/**
 * @param {string} root
 * @param {readonly string[]} args
 * @returns {Promise<number>} 1 where something was violated
 */
export async function torture(root, args) {
  const { values, positionals } = read(args)
  const [part = '', ...rest] = positionals
  const worker = Object.hasOwn(parts, part) ? parts[part] : undefined
  if (worker === undefined || rest.length > 0) refuse('Name one part to torture.')
  const unknown = values.engine.filter((name) => !Object.hasOwn(engines, name))
  if (unknown.length > 0) refuse(`There is no engine ${unknown.join(', ')}.`)
  const seconds = Number(values.seconds)
  if (!(seconds >= 1 && seconds <= 86_400)) refuse('--seconds takes a number from 1 to 86400.')
  const messages = wholeOf('messages', values.messages)
  const keys = wholeOf('keys', values.keys) ?? (messages === undefined ? undefined : 10_000)
  if (part !== 'messaging' && keys !== undefined) refuse('--messages and --keys are for messaging.')
  await ensureServers(root, serversNamed(values.engine.flatMap((name) => engines[name] ?? [])))
  const folder = join(root, '.cache', `torture-${randomUUID()}`)
  const sources = join(root, 'test', 'torture')
  // It is installed by now, and this file is loaded before.
  const { build } = await import('esbuild')
  try {
    await build({
      entryPoints: { run: join(sources, 'run.ts'), [`${part}-worker`]: join(sources, worker) },
      outdir: folder,
      bundle: true,
      packages: 'external',
      splitting: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      logLevel: 'error',
    })
    const { seed, json, plant } = values
    const asked = JSON.stringify({ part, engines: values.engine, seconds, messages, keys, seed, json, plant })
    return (await runNode(join(folder, 'run.js'), [asked], { cwd: root })).code
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
