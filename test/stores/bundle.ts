// Sources as JavaScript, for processes that run on another Node or without a loader.

import { build } from 'esbuild'

/** Bundles sources into a folder: a file for each entry, and what they share beside them. What is `external` is imported from there. */
export async function bundleInto(
  outdir: string,
  entryPoints: Readonly<Record<string, string>>,
  external: string[] = [],
): Promise<void> {
  await build({
    entryPoints,
    outdir,
    bundle: true,
    external,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'error',
  })
}
