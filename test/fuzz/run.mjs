// npm run fuzz: many spoiled inputs through every parser. Each input must be accepted, or refused by an error with a
// code; never a crash, never a hang. One case is replayed by --parser, --seed and --case.

import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { seededRandom } from 'reprise/kernel'
import { planted, subjects } from './parsers.mjs'

const usage = `npm run fuzz -- [options]
  --cases N      inputs for each parser (default 1000000)
  --seed N       replay a run (default: drawn, and printed)
  --parser NAME  only this parser; may be given several times
  --case N       with --parser and --seed: show one input and what becomes of it
  --plant NAME   add a parser that is broken on purpose: ${Object.keys(planted).join(', ')}
  --json         one JSON object on standard output
parsers: ${subjects.map(({ name }) => name).join(', ')}`

const hangAfterMs = 10_000
const everyMs = 500

/** @param {string} line @returns {never} */
function refuse(line) {
  console.error(`${line}\n\n${usage}`)
  process.exit(2)
}

function readOptions() {
  try {
    return parseArgs({
      options: {
        cases: { type: 'string', default: '1000000' },
        seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
        parser: { type: 'string', multiple: true, default: [] },
        case: { type: 'string' },
        plant: { type: 'string', multiple: true, default: [] },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    return refuse(/** @type {Error} */ (error).message)
  }
}

const options = readOptions()
if (options.help) {
  console.log(usage)
  process.exit(0)
}
const cases = Number(options.cases)
if (!Number.isSafeInteger(cases) || cases < 1) refuse('--cases takes a whole number of at least 1')
const known = [...subjects, ...Object.values(planted)]
const extra = options.plant.map((name) => planted[name] ?? refuse(`nothing to plant is called ${name}`))
const chosen = options.parser.map((name) => known.find((s) => s.name === name) ?? refuse(`no parser is called ${name}`))
const list = [...(chosen.length > 0 ? chosen : subjects), ...extra]
const say = options.json ? () => {} : console.log

if (options.case !== undefined) {
  for (const subject of list) {
    const input = subject.draw(seededRandom(`${options.seed}/${subject.name}/${options.case}`))
    console.log(subject.name, JSON.stringify(input))
    console.log(subject.parse(input))
  }
  process.exit(0)
}

/** @param {import('./parsers.mjs').Subject} subject @returns {Promise<any>} */
function fuzz(subject) {
  const progress = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(new URL('./worker.mjs', import.meta.url), {
    workerData: { name: subject.name, cases, seed: options.seed, progress },
  })
  const result = { name: subject.name, startedAt: performance.now() }
  return new Promise((resolve) => {
    let last = -1
    let stillMs = 0
    const watch = setInterval(() => {
      const index = Atomics.load(progress, 0)
      stillMs = index === last ? stillMs + everyMs : 0
      last = index
      if (stillMs >= hangAfterMs) finish({ index, error: `no answer after ${hangAfterMs} ms` })
    }, everyMs)
    const finish = (/** @type {object} */ outcome) => {
      clearInterval(watch)
      void worker.terminate()
      resolve({ ...result, ms: Math.round(performance.now() - result.startedAt), ...outcome })
    }
    worker.on('message', (message) => finish(message))
    worker.on('error', (error) => finish({ index: Atomics.load(progress, 0), error: String(error) }))
    worker.on('exit', (code) => finish({ index: Atomics.load(progress, 0), error: `the worker ended with ${code}` }))
  })
}

say(`seed ${options.seed}, ${cases} inputs for each of ${list.length} parsers`)
const results = []
for (const subject of list) {
  const result = await fuzz(subject)
  results.push(result)
  if (result.error === undefined) {
    const refusals = Object.entries(result.codes).map(([code, count]) => `${code} ${count}`)
    say(`ok    ${subject.name}: ${(result.ms / 1_000).toFixed(1)} s; ${refusals.join(', ')}`)
  } else {
    say(`FAIL  ${subject.name}, case ${result.index}: ${result.error}`)
    say(`      replay: npm run fuzz -- --parser '${subject.name}' --seed ${options.seed} --case ${result.index}`)
  }
}
const failed = results.filter(({ error }) => error !== undefined).length
if (options.json) console.log(JSON.stringify({ seed: options.seed, cases, results }))
say(`${results.length - failed} parsers held, ${failed} failed`)
process.exit(failed > 0 ? 1 : 0)
