// Runs the HTTP cases against peers: npm run peers -- [names] [--only ids]. Writes what it saw to results.json; needs
// the built package.

import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { httpCaseClient, httpCaseRunner, httpCases } from '../../dist/testing/index.js'
import { findSqliteDrivers } from '../../tools/sqlite-drivers.mjs'
import { peerProgram } from './program.mjs'

/**
 * @typedef {object} Peer
 * @property {string} name
 * @property {string} version
 * @property {string} store
 * @property {string} subject the program of its subject, from this folder
 * @property {{ repository: string, tag: string, commit: string, modules: Record<string, string> }} [source] default:
 *   from the lock file
 * @property {boolean} [newerNode] asks for a newer Node than the oldest one that we support
 * @property {string} [driver] its driver of SQLite
 * @property {boolean} [shared] its store is a file
 * @property {boolean} [fresh] every case gets a store of its own
 * @property {string} [mark] its name of Idempotent-Replayed
 * @property {string} mounted
 * @property {Record<string, string>} [lacks] cases that it documents no option for, and why
 */

/** @typedef {{ outcome: string, why?: string }} Result */

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/[/\\]$/, '')
const resultsFile = new URL('./results.json', import.meta.url)
/** @type {readonly Peer[]} */
const peers = JSON.parse(readFileSync(new URL('./peers.json', import.meta.url), 'utf8'))

const usage = `usage: npm run peers -- [peer ...] [--only CASE ...]
  --only CASE  run these cases and print them; nothing is written
peers: ${peers.map(({ name }) => name).join(', ')} (default: all)`

/** @returns {{ values: { only?: string[], help?: boolean }, positionals: string[], mistake?: string }} */
function parsed() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: { only: { type: 'string', multiple: true }, help: { type: 'boolean' } },
    })
  } catch (error) {
    // The first sentence says what is wrong; what follows is about arguments that begin with a dash.
    const [mistake] = /** @type {Error} */ (error).message.split('. ')
    return { values: {}, positionals: [], mistake: `${mistake}.` }
  }
}

/** Reads the command line, or explains it and exits with 2. */
function readArguments() {
  const { values, positionals, mistake } = parsed()
  const mistakes = [
    ...(mistake === undefined ? [] : [mistake]),
    ...positionals
      .filter((name) => !peers.some((peer) => peer.name === name))
      .map((name) => `There is no peer named ${name}.`),
    ...(values.only ?? [])
      .filter((word) => !httpCases.some(({ id }) => id === word))
      .map((word) => `There is no case ${word}.`),
  ]
  if (values.help || mistakes.length > 0) {
    console.error([...mistakes, usage].join('\n'))
    process.exit(values.help ? 0 : 2)
  }
  return { names: positionals, only: values.only }
}

/** Starts a process of a subject, on a folder that holds its ledger and its store. */
async function start(/** @type {Peer} */ peer, /** @type {string} */ program, /** @type {string} */ folder) {
  const isOurs = peer.subject.endsWith('.ts')
  const node = peer.newerNode ? driverNode().node : process.execPath
  const store = peer.shared ? join(folder, 'store.db') : ''
  const args = isOurs ? ['express', `sqlite:${store}`] : [join(folder, 'ledger'), peer.mark ?? '', store]
  const env = { ...process.env, SUBJECT_SINK: join(folder, 'sink') }
  const child = spawn(node, [program, ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors = `${errors}${text}`.slice(-2000)
  })
  /** @type {string} */
  const url = await new Promise((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text) => {
      const ready = /^ready (\S+)$/m.exec(text)
      if (ready?.[1] !== undefined) resolve(ready[1])
    })
    void ended.then(() => reject(new Error(`The subject of ${peer.name} ended before it was ready.\n${errors}`)))
  })
  return {
    url,
    async stop() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Runs cases against so many processes on one store, all new. */
async function runCases(
  /** @type {Peer} */ peer,
  /** @type {string} */ program,
  /** @type {typeof httpCases} */ cases,
  places = 1,
) {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-peer-'))
  const running = []
  /** @type {Record<string, Result>} */
  const results = {}
  try {
    for (let place = 0; place < places; place += 1) running.push(await start(peer, program, folder))
    const runner = httpCaseRunner(httpCaseClient({ urls: running.map(({ url }) => url) }))
    for (const one of cases) results[one.id] = await runner.run(one)
  } finally {
    await Promise.all(running.map(({ stop }) => stop()))
    rmSync(folder, { recursive: true, force: true })
  }
  return results
}

/** All cases against a peer, each on as many processes and as new a store as it takes. */
async function runPeer(/** @type {Peer} */ peer, /** @type {typeof httpCases} */ cases) {
  const elsewhere = (/** @type {string} */ module) =>
    join(driverNode().folder, 'node_modules', module, 'lib', 'index.js')
  const program = await peerProgram(peer, peer.driver === undefined ? {} : { [peer.driver]: elsewhere(peer.driver) })
  const { lacks = {} } = peer
  /** @type {Record<string, Result>} */
  const results = {}
  for (const { id } of cases) {
    if (lacks[id] !== undefined) results[id] = { outcome: 'not offered', why: lacks[id] }
  }
  const left = cases.filter(({ id }) => lacks[id] === undefined)
  for (const places of [1, 2]) {
    const ofPlaces = left.filter((one) => (one.places ?? 1) === places)
    const groups = peer.fresh ? ofPlaces.map((one) => [one]) : [ofPlaces]
    for (const group of groups) Object.assign(results, await runCases(peer, program, group, places))
  }
  // In the order of the list, so that two runs can be compared.
  return Object.fromEntries(cases.flatMap(({ id }) => (results[id] === undefined ? [] : [[id, results[id]]])))
}

function driverNode() {
  const found = findSqliteDrivers(root)
  if ('why' in found) throw new Error(found.why)
  return found
}

const { names, only } = readArguments()
const cases = only === undefined ? httpCases : httpCases.filter(({ id }) => only.includes(id))
const saved = JSON.parse(readFileSync(resultsFile, 'utf8'))
for (const peer of peers.filter(({ name }) => names.length === 0 || names.includes(name))) {
  try {
    const results = await runPeer(peer, cases)
    const count = (/** @type {string} */ outcome) =>
      Object.values(results).filter((one) => one.outcome === outcome).length
    console.log(
      `\n${peer.name} (${peer.version}): ${['passed', 'failed', 'not offered'].map((outcome) => `${count(outcome)} ${outcome}`).join(', ')}`,
    )
    for (const [id, { outcome, why }] of Object.entries(results)) {
      if (outcome !== 'passed') console.log(`  ${outcome.padEnd(11)}  ${id.padEnd(8)}  ${why}`)
    }
    if (only === undefined) saved[peer.name] = { version: peer.version, results }
  } catch (error) {
    // What was seen before stays; a peer that cannot be had today is no worse for it.
    console.error(`\n${peer.name} was not run: ${/** @type {Error} */ (error).message}`)
    process.exitCode = 1
  }
}
if (only === undefined) writeFileSync(resultsFile, `${JSON.stringify(saved, null, 2)}\n`)
