// The page of the sample service: its script in one file, with the parts of dist that it runs in the browser, beside
// its markup and style.

import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

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
}
