// The page of the sample service: its script in one file, with the parts of dist that it runs in the browser, beside
// its markup and style.

import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const readable = ['examples/payments', 'examples/payments/page', 'examples/payments/receipts', 'docs/guides']

/**
 * Writes the page into the folder of the compiled examples. Does nothing in a project without one.
 * @param {string} root
 * @param {string} folder
 */
export async function bundlePage(root, folder) {
  const source = join(root, 'examples', 'payments', 'page')
  if (!existsSync(source)) return
  // Required from the root, after the installation: this file is loaded before it.
  const esbuild = /** @type {typeof import('esbuild')} */ (createRequire(join(root, 'package.json'))('esbuild'))
  const target = join(folder, 'payments', 'page')
  mkdirSync(target, { recursive: true })
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: [join(source, 'main.ts')],
    outfile: join(target, 'page.js'),
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    logLevel: 'silent',
  })
  for (const name of ['index.html', 'style.css']) copyFileSync(join(source, name), join(target, name))
  // What its links lead to: the sources behind the buttons, and the guides.
  mkdirSync(join(target, 'read'), { recursive: true })
  const linked = readFileSync(join(source, 'index.html'), 'utf8').matchAll(/href="\/read\/(?<name>[^"#]+)/g)
  for (const name of new Set(Array.from(linked, (link) => link.groups?.['name'] ?? ''))) {
    const from = readable.map((place) => join(root, place, name)).find((file) => existsSync(file))
    if (from === undefined) throw new Error(`The page links to ${name}, which is in none of ${readable.join(', ')}.`)
    copyFileSync(from, join(target, 'read', name))
  }
}
