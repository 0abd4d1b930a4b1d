// The API reference: typedoc writes it from the doc comments of every entry point into docs/reference/api.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { filesBelow } from './build.mjs'
import { entryPointsOf } from './entry-points.mjs'
import { packageScript, plainEnvironment, Refusal, runNode, say } from './process.mjs'
import { anchorsOf } from './tidy/documents.mjs'

const place = join('docs', 'reference', 'api')

/** Generates the reference into a folder; refuses when typedoc warns about anything. */
async function generate(/** @type {string} */ root, /** @type {string} */ out) {
  // A name is described where it is met first. The main entry point comes last: its names belong to modules.
  const entryPoints = [...entryPointsOf(root)].sort((a, b) => b.name.length - a.name.length)
  const entries = entryPoints.flatMap((entryPoint) => ['--entryPoints', entryPoint.source])
  const args = [...entries, '--out', out]
  const options = { cwd: root, quiet: true, env: plainEnvironment() }
  const { code, output } = await runNode(packageScript(root, 'typedoc'), args, options)
  if (code !== 0) throw new Refusal(`${output.trim()}\n\ntypedoc found something undocumented, unexported or misspelt.`)
  for (const page of filesBelow(out, '.')) mendAnchors(join(out, page))
}

/** The markdown plugin numbers some anchors as if a heading stood twice; where it stands once, the number goes. */
function mendAnchors(/** @type {string} */ page) {
  const text = readFileSync(page, 'utf8')
  const mended = text.replace(/\(([\w./-]*)#([^)]+?)(-\d+)\)/g, (link, /** @type {string} */ path, plain, number) => {
    const target = path === '' ? page : join(dirname(page), path)
    if (!existsSync(target)) return link
    const anchors = anchorsOf(target === page ? text : readFileSync(target, 'utf8'))
    return anchors.has(plain + number) || !anchors.has(plain) ? link : `(${path}#${plain})`
  })
  if (mended !== text) writeFileSync(page, mended)
}

/** Writes the reference where it is kept. */
export async function writeApiReference(/** @type {string} */ root) {
  await generate(root, join(root, place))
  say(`wrote ${place}`)
  return 0
}

/** What differs between the kept reference and one generated now: [] when it is fresh. */
export async function staleApiPages(/** @type {string} */ root) {
  const fresh = mkdtempSync(join(tmpdir(), 'reprise-api-'))
  try {
    await generate(root, fresh)
    const now = new Set(filesBelow(fresh, '.'))
    const kept = new Set(filesBelow(join(root, place), '.'))
    const same = (/** @type {string} */ page) =>
      readFileSync(join(fresh, page)).equals(readFileSync(join(root, place, page)))
    return [
      ...[...now].filter((page) => !kept.has(page)).map((page) => `${join(place, page)} is missing`),
      ...[...kept].filter((page) => !now.has(page)).map((page) => `${join(place, page)} describes nothing any more`),
      ...[...now].filter((page) => kept.has(page) && !same(page)).map((page) => `${join(place, page)} is out of date`),
    ]
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}
