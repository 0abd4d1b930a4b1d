// Sources as JavaScript, for processes that run on another Node or without a loader.

import { build } from 'esbuild'

/** What of a bundle is imported by its processes and not put into it. */
export interface LeftOut {
  /** These packages. Default: none. */
  readonly external?: readonly string[]
  /** `'external'`: all packages. Default: none. */
  readonly packages?: 'external'
}

/** Bundles sources into a folder: a file for each entry, and what they share beside them. */
export async function bundleInto(
  outdir: string,
  entryPoints: Readonly<Record<string, string>>,
  { external = [], packages }: LeftOut = {},
): Promise<void> {
  await build({
    entryPoints,
    outdir,
    bundle: true,
    external: [...external],
    ...(packages === undefined ? {} : { packages }),
    // What is imported on demand stays apart, so that a process loads only what it is told to.
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'error',
  })
}
