// How many bytes an entry point costs: everything behind it in one minified file, compressed as a server would (gzip
// -9); beside it what a program loads that takes only a few names, and what each concept behind the entry point adds.

import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, transform } from 'esbuild'

const root = fileURLToPath(new URL('../', import.meta.url))

/** The names an ordinary program takes from the entry point. */
const ordinary = ['retryPolicy', 'fullJitter', 'keyed', 'tokenBudget']

/**
 * Which concept a file belongs to: the first pattern that its path matches.
 * @type {readonly (readonly [concept: string, file: RegExp])[]}
 */
const concepts = [
  ['hedging', /retry\/run\/hedge/],
  ['limits of a call: signal, deadline, time-outs', /retry\/run\/(limits|timeouts)|kernel\/(deadline|sleep)/],
  ['layers and async context', /retry\/run\/layers|kernel\/(live-scope|turn)|identity\/intent/],
  ['runner: attempts, failures, decisions, history', /retry\/(run\/|decide|history|unknown-outcome)/],
  ['policies, and policies as data', /retry\/(policy|options|demand)/],
  ['classifying network failures', /retry\/classify\/network/],
  ['classifying HTTP answers, dates included', /retry\/classify\/http|identity\/(http-date|headers)/],
  ['verdicts and combining classifiers', /retry\/(classify\/|verdict)/],
  ['breakers', /retry\/target\/breaker/],
  ['budgets', /retry\/target\//],
  ['backoff', /retry\/backoff/],
  ['guards and keys', /retry\/guard|identity\/key/],
  ['durations in text', /kernel\/duration/],
  ['clock, chance, errors, channels', /kernel\/|telemetry\//],
  ['the exported names themselves', /^names$/],
]

/**
 * @param {string} name The entry point, as a person would import it.
 * @param {string} script Its built file, from the root of the repository.
 * @param {number} limit The most bytes, compressed.
 */
export async function entryPointSize(name, script, limit) {
  const whole = await bundle({ entryPoints: [script] }, true)
  const few = `export { ${ordinary.join(', ')} } from './${script}'`
  const part = await bundle({ stdin: { contents: few, resolveDir: root } }, true)
  const bytes = compressed(whole)
  return {
    name,
    bytes,
    minifiedBytes: Buffer.byteLength(whole),
    ratio: bytes / limit,
    target: `<= ${limit}`,
    met: bytes <= limit,
    ordinary: { names: ordinary, bytes: compressed(part), minifiedBytes: Buffer.byteLength(part) },
    concepts: await weighConcepts(script),
  }
}

/**
 * @param {import('esbuild').BuildOptions} entry
 * @param {boolean} minifyWhitespace
 */
async function bundle(entry, minifyWhitespace) {
  const { outputFiles } = await build({
    ...entry,
    absWorkingDir: root,
    bundle: true,
    minifyIdentifiers: true,
    minifySyntax: true,
    minifyWhitespace,
    format: 'esm',
    write: false,
    logLevel: 'silent',
  })
  return outputFiles[0].text
}

function compressed(/** @type {string} */ text) {
  return gzipSync(text, { level: 9 }).length
}

/**
 * What the entry point would lose without each concept, compressed. What concepts have in common is found in the others
 * then, so the sum is less than the whole.
 * @param {string} script
 */
async function weighConcepts(script) {
  // With its whitespace, a bundle has a comment with the name of each file where that begins.
  const [code, names = ''] = (await bundle({ entryPoints: [script] }, false)).split(/^(?=export \{)/m)
  const pieces = [{ file: 'names', text: names.replace(/\s+/g, ' ') }]
  for (const piece of code.split(/^\/\/ (?=\S+\.js$)/m).slice(1)) {
    const end = piece.indexOf('\n')
    const { code: text } = await transform(piece.slice(end), { minifyWhitespace: true })
    pieces.push({ file: piece.slice(0, end), text })
  }
  const all = compressed(pieces.map(({ text }) => text).join(''))
  const conceptOf = (/** @type {string} */ file) => concepts.find(([, pattern]) => pattern.test(file))?.[0] ?? file
  return [...new Set(pieces.map(({ file }) => conceptOf(file)))]
    .map((concept) => {
      const own = pieces.filter(({ file }) => conceptOf(file) === concept).map(({ text }) => text)
      const rest = pieces.filter(({ file }) => conceptOf(file) !== concept).map(({ text }) => text)
      return { concept, bytes: all - compressed(rest.join('')), minifiedBytes: own.join('').length }
    })
    .toSorted((a, b) => b.bytes - a.bytes)
}

/**
 * A size as lines for people.
 * @param {Awaited<ReturnType<typeof entryPointSize>>} size
 * @param {boolean} judged
 */
export function sizeLine({ name, bytes, minifiedBytes, ratio, target, met, ordinary, concepts }, judged) {
  const text = `size of ${name}, the whole entry point: ${bytes} bytes minified and gzipped (${minifiedBytes} before)`
  const verdict = `, ${ratio.toFixed(2)} x, target ${target}: ${met ? 'met' : 'MISSED'}`
  return [
    judged ? text + verdict : text,
    `a program with { ${ordinary.names.join(', ')} }: ${ordinary.bytes} bytes (${ordinary.minifiedBytes} before)`,
    'what the entry point would lose without:',
    ...concepts.map((one) => `${String(one.bytes).padStart(7)}  (${one.minifiedBytes} before)  ${one.concept}`),
  ].join('\n')
}
