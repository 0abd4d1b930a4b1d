// How many bytes a door costs: everything behind it in one minified file, compressed as a server would (gzip -9).

import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('../', import.meta.url))
// The files that weigh most; the rest is small change.
const listed = 20

/**
 * @param {string} name The door, as a person would import it.
 * @param {string} script Its built file, from the root of the repository.
 * @param {number} limit The most bytes, compressed.
 */
export async function doorSize(name, script, limit) {
  const { outputFiles, metafile } = await build({
    entryPoints: [script],
    absWorkingDir: root,
    bundle: true,
    minify: true,
    format: 'esm',
    write: false,
    metafile: true,
    logLevel: 'silent',
  })
  const bytes = gzipSync(outputFiles[0].contents, { level: 9 }).length
  const inputs = Object.values(metafile.outputs)[0].inputs
  const contributors = Object.entries(inputs)
    .map(([file, { bytesInOutput }]) => ({ file, minifiedBytes: bytesInOutput }))
    .toSorted((a, b) => b.minifiedBytes - a.minifiedBytes)
  return {
    name,
    bytes,
    minifiedBytes: outputFiles[0].contents.length,
    ratio: bytes / limit,
    target: `<= ${limit}`,
    met: bytes <= limit,
    contributors: contributors.slice(0, listed),
  }
}

/**
 * A size as a line for people.
 * @param {Awaited<ReturnType<typeof doorSize>>} size
 * @param {boolean} judged
 */
export function sizeLine({ name, bytes, minifiedBytes, ratio, target, met }, judged) {
  const text = `size of ${name}: ${bytes} bytes minified and gzipped (${minifiedBytes} before)`
  return judged ? `${text}, ${ratio.toFixed(2)} x, target ${target}: ${met ? 'met' : 'MISSED'}` : text
}
