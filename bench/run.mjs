// Runs benches: node bench/run.mjs [names] [--json] [--gate] [--smoke] [--curve]. Needs the built package and bench's
// own lock installed.

import { existsSync, readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { sizeLine } from './entry-point-size.mjs'
import { fullEffort, lines, measure, rowsOf, smokeEffort } from './harness.mjs'

// One file per module. Each exports `peers` (package names), `cases(options)`, which first checks that its subjects do
// what they claim, and perhaps `peersFolder` (where its peers are installed), `versions` (of peers that are elsewhere)
// and `sizes()`. A case that measures otherwise than all brings `measure` and `lines`.
const benches = {
  identity: './identity.mjs',
  retry: './retry.mjs',
  transaction: './transaction.mjs',
  operation: './operation.mjs',
  http: './http.mjs',
  messaging: './messaging.mjs',
}

const usage = `usage: npm run bench -- [bench ...] [--json] [--gate] [--smoke] [--curve] [--node 24]
  --json   print one JSON document and nothing else
  --gate   exit 1 when a target is missed
  --smoke  a short run that shows that everything works and agrees; nothing is judged
  --node   measures on another Node, from npm, with the newest peers that it allows
  --curve  also what takes many minutes: ten million old records (operation), a backlog of a million (messaging)
benches: ${Object.keys(benches).join(', ')} (default: all)`

const options = ['json', 'gate', 'smoke', 'curve']

/** Reads the command line, or explains it and exits with 2. */
function readArguments() {
  const flags = Object.fromEntries(options.map((name) => [name, { type: /** @type {const} */ ('boolean') }]))
  const { values, positionals } = parseArgs({ allowPositionals: true, strict: false, options: flags })
  const mistakes = [
    ...Object.keys(values)
      .filter((name) => !options.includes(name))
      .map((name) => `There is no option --${name}.`),
    ...positionals.filter((name) => !Object.hasOwn(benches, name)).map((name) => `There is no bench named ${name}.`),
  ]
  if (values.gate && values.smoke) mistakes.push('A smoke run is too short to be judged: --gate needs a full run.')
  if (mistakes.length > 0) {
    console.error(`${mistakes.join('\n')}\n${usage}`)
    process.exit(2)
  }
  const names = positionals.length > 0 ? [...new Set(positionals)] : Object.keys(benches)
  const isSet = (/** @type {string} */ name) => values[name] === true
  return { names, json: isSet('json'), gate: isSet('gate'), smoke: isSet('smoke'), curve: isSet('curve') }
}

/**
 * @param {string} name
 * @param {URL | string} folder
 */
function peerVersion(name, folder) {
  // Drivers are dependencies of the project itself.
  const manifests = [folder, new URL('../', import.meta.url)].map(
    (place) => new URL(`./node_modules/${name}/package.json`, place),
  )
  const manifest = manifests.find((candidate) => existsSync(candidate)) ?? manifests[0]
  return JSON.parse(readFileSync(manifest, 'utf8')).version
}

/** @param {ReturnType<typeof rowsOf>} rows */
function table(rows) {
  const width = Math.max(...rows.map(({ name }) => name.length))
  return rows.map(
    ({ name, ratio, target, met }) =>
      `${name.padEnd(width)}  ${ratio.toFixed(2).padStart(6)}  ${target}  ${met ? 'met' : 'MISSED'}`,
  )
}

const { names, json, gate, smoke, curve } = readArguments()
const report = {
  node: process.version,
  cpu: cpus()[0]?.model ?? 'unknown',
  cpus: cpus().length,
  smoke,
  benches: [],
  /** One for each target. @type {ReturnType<typeof rowsOf>} */
  rows: [],
  missed: 0,
}
const print = json ? () => {} : console.log
print(`node ${report.node} on ${report.cpus} x ${report.cpu}${smoke ? ', smoke run: nothing is judged' : ''}`)

for (const name of names) {
  const bench = await import(benches[name])
  const { peers, peersFolder = import.meta.url, cases, sizes = () => [] } = bench
  const versions = {
    ...Object.fromEntries(peers.map((peer) => [peer, peerVersion(peer, peersFolder)])),
    ...bench.versions,
  }
  const told = Object.entries(versions).map(([peer, version]) => `${peer} ${version}`)
  print(`\n${name}, against ${told.join(', ')}`)
  const measured = []
  for await (const one of cases({ smoke, curve })) {
    const own = one.measure ?? measure
    const result = await (smoke ? own({ ...one, targets: [] }, smokeEffort) : own(one, fullEffort))
    measured.push(result)
    report.rows.push(...rowsOf(result))
    report.missed += result.ratios.filter((ratio) => ratio.met === false).length
    print(`\n${(one.lines ?? lines)(result).join('\n')}`)
  }
  const weighed = await Promise.all(sizes())
  for (const size of weighed) {
    if (!smoke && !size.met) report.missed += 1
    print(`\n${sizeLine(size, !smoke)}`)
  }
  report.benches.push({ name, peers: versions, cases: measured, ...(weighed.length > 0 && { sizes: weighed }) })
}

if (report.rows.length > 0) print(`\n${table(report.rows).join('\n')}`)
if (json) console.log(JSON.stringify(report, null, 2))
else if (smoke) print('\nall subjects ran and agreed')
else print(`\n${report.missed === 0 ? 'all targets met' : `${report.missed} targets MISSED`}`)
if (gate && report.missed > 0) process.exitCode = 1
