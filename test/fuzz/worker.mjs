// Fuzzes one subject in a thread of its own, so that a hang is seen from outside and named.

import { parentPort, workerData } from 'node:worker_threads'
import { isRepriseError, seededRandom } from 'reprise/kernel'
import { planted, subjects } from './parsers.mjs'

const { name, cases, seed, progress } = workerData
const subject = [...subjects, ...Object.values(planted)].find((candidate) => candidate.name === name)
if (subject === undefined) throw new Error(`no subject named ${name}`)

// Case by case its own stream, so that one case can be replayed without those before it.
const drawCase = (/** @type {number} */ index) => subject.draw(seededRandom(`${seed}/${name}/${index}`))

const codes = new Map()
for (let index = 0; index < cases; index++) {
  const input = drawCase(index)
  Atomics.store(progress, 0, index)
  try {
    subject.parse(input)
    codes.set('accepted', (codes.get('accepted') ?? 0) + 1)
  } catch (error) {
    if (!isRepriseError(error)) {
      parentPort?.postMessage({ kind: 'failure', index, error: String(/** @type {any} */ (error)?.stack ?? error) })
      process.exit()
    }
    codes.set(error.code, (codes.get(error.code) ?? 0) + 1)
  }
}
parentPort?.postMessage({ kind: 'done', codes: Object.fromEntries([...codes].sort()) })
