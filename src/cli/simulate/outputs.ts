// Where results go besides the terminal: an SVG file, JSON in a file or on the standard output.

import type { Io } from '../io.js'
import { type GivenOptions, type OptionGroup, UsageError } from '../option-table.js'
import { type Chart, svgChart } from './svg-chart.js'

/** Options of every simulation. */
export const outputOptions: readonly OptionGroup[] = [
  {
    title: 'Output',
    options: [
      { name: 'svg', kind: 'text', value: 'FILE', text: 'also draws it into a file' },
      {
        name: 'json',
        kind: 'maybe-text',
        value: 'FILE',
        text: 'also writes everything as JSON; without FILE, only that, to stdout',
      },
      { name: 'help', kind: 'flag', text: 'this help' },
    ],
  },
]

/**
 * Refuses files that could not be written, and `-`, which other programs take for the standard output. Checked before
 * the run, so that no run is lost.
 */
export async function checkOutputs(given: GivenOptions, io: Io): Promise<void> {
  if (given.text('svg') === '-') throw new UsageError('--svg takes the name of a file; the standard output is not one')
  if (given.text('json') === '-')
    throw new UsageError('--json writes to the standard output without a name, not with -')
  for (const path of [given.text('svg'), given.text('json')]) {
    if (!path) continue
    try {
      await io.checkWritable?.(path)
    } catch (error) {
      throw new UsageError(`${path}: cannot be written: ${said(error)}`)
    }
  }
}

/** Why a file or module of the user's failed: the system's error code, else the message. */
export function said(error: unknown): string {
  if (!(error instanceof Error)) return 'it threw'
  const { code } = error as { readonly code?: unknown }
  return typeof code === 'string' ? code : error.message
}

/** Writes the files that the options ask for. */
export async function writeOutputs(
  given: GivenOptions,
  io: Io,
  { json, chart }: { readonly json: unknown; readonly chart: Chart },
): Promise<void> {
  const svgFile = given.text('svg')
  const jsonFile = given.text('json')
  if (svgFile !== undefined) await io.writeText(svgFile, svgChart(chart))
  if (jsonFile === undefined) return
  // JSON has no Infinity: a limit that is not set becomes null.
  const text = `${JSON.stringify(json, undefined, 2)}\n`
  if (jsonFile === '') io.write(text)
  else await io.writeText(jsonFile, text)
}
