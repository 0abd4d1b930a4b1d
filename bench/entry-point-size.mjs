// How many bytes an ordinary program loads of an entry point, in one minified file, compressed as a server would (gzip
// -9); beside it what each concept adds to that, and what everything behind the entry point weighs.

import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, transform } from 'esbuild'

const root = fileURLToPath(new URL('../', import.meta.url))

/** The names an ordinary program takes from the entry point. */
const ordinary = ['retryPolicy', 'fullJitter', 'keyed']

/**
 * Which concept a file belongs to: the first pattern that its path matches.
 * @type {readonly (readonly [concept: string, file: RegExp])[]}
 */
const concepts = [
  ['limits of a call: signal, deadline, time-outs', /retry\/run\/(limits|timeouts)|kernel\/time\/wait/],
  [
    'layers: context, allowance, keys that were sent',
    /retry\/(run\/(layers|spent|sent-keys)|foreign)|live-scope|identity\/intent/,
  ],
  ['runner: attempts, failures, decisions, history', /retry\/(run\/|decide|history|unknown-outcome)/],
  ['what left during an unguarded attempt', /retry\/sent/],
  ['policies', /retry\/policy/],
  ['checks of options', /retry\/(options|demand)|kernel\/options/],
  ['classifying network failures', /retry\/classify\/network/],
  ['classifying HTTP answers, dates included', /retry\/classify\/http|identity\/(http-date|headers)|iso-time/],
  ['verdicts and combining classifiers', /retry\/(classify\/|verdict)/],
  ['budgets', /retry\/target\//],
  ['backoff', /retry\/backoff/],
  ['guards and keys', /retry\/guard|identity\/key/],
  ['durations in text', /kernel\/time\/duration/],
  ['clock, chance, errors, channels', /kernel\/|telemetry\//],
  ['the exported names themselves', /^names$/],
]

/**
 * @param {string} name The entry point, as a person would import it.
 * @param {string} script Its built file, from the root of the repository.
 * @param {number} limit The most bytes of an ordinary program, compressed.
 */
export async function entryPointSize(name, script, limit) {
  const whole = await bundle({ entryPoints: [script] }, true)
  const few = `export { ${ordinary.join(', ')} } from './${script}'`
  const program = { stdin: { contents: few, resolveDir: root } }
  const part = await bundle(program, true)
  const bytes = compressed(part)
  return {
    name,
    names: ordinary,
    bytes,
    minifiedBytes: Buffer.byteLength(part),
    ratio: bytes / limit,
    target: `<= ${limit}`,
    met: bytes <= limit,
    whole: { bytes: compressed(whole), minifiedBytes: Buffer.byteLength(whole) },
    concepts: await weighConcepts(program),
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
 * What the program would lose without each concept, compressed. What concepts have in common is found in the others
 * then, so the sum is less than the whole.
 * @param {import('esbuild').BuildOptions} program
 */
async function weighConcepts(program) {
  // With its whitespace, a bundle has a comment with the name of each file where that begins.
  const [code, names = ''] = (await bundle(program, false)).split(/^(?=export \{)/m)
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
export function sizeLine({ name, names, bytes, minifiedBytes, ratio, target, met, whole, concepts }, judged) {
  const program = `a program with { ${names.join(', ')} } of ${name}`
  const text = `size of ${program}: ${bytes} bytes minified and gzipped (${minifiedBytes} before)`
  const verdict = `, ${ratio.toFixed(2)} x, target ${target}: ${met ? 'met' : 'MISSED'}`
  return [
    judged ? text + verdict : text,
    `the whole entry point: ${whole.bytes} bytes (${whole.minifiedBytes} before)`,
    'what the program would lose without:',
    ...concepts.map((one) => `${String(one.bytes).padStart(7)}  (${one.minifiedBytes} before)  ${one.concept}`),
  ].join('\n')
}
