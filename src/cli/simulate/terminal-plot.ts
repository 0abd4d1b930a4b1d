// Bar charts for a terminal, drawn with block characters: one column for one or more seconds, eight steps to a line.

import { short } from './svg-chart.js'

/** Terminal colours by their ANSI number. */
export type TerminalColor = 31 | 32 | 33 | 34 | 35 | 36 | 90

/** The text in a colour, if the terminal shows colours. */
export function colored(text: string, color: TerminalColor, welcome: boolean): string {
  return welcome ? `\u001b[${color}m${text}\u001b[0m` : text
}

/** What a panel of bars is drawn from. */
export interface BarPanel {
  readonly title: string
  /** One value for each second; undefined where nothing was measured. */
  readonly values: readonly (number | undefined)[]
  /** How many values there will be at the end of the run. */
  readonly length: number
  /** How many lines the bars have. */
  readonly rows: number
  /** Width in characters, labels included. */
  readonly columns: number
  readonly color: TerminalColor
  /** The lowest value for the top of the scale; higher bars raise it. Default 0. */
  readonly atLeast?: number
}

/** How many characters stand before the bars: the label and the axis. */
export const labelWidth = 8

const eighths = ' ▁▂▃▄▅▆▇█'

/** The heading within this many characters: cut at its comma if it is too long, and then to the width. */
export function heading(title: string, columns: number): string {
  const fits = title.length <= columns ? title : title.replace(/,.*/, '')
  return fits.slice(0, Math.max(0, columns))
}

/**
 * The text for a terminal this wide: longer lines are broken at spaces and continued with an indent, in a table under
 * its last column where there is room. Unchanged without a terminal.
 */
export function fitted(text: string, columns: number | undefined): string {
  if (columns === undefined) return text
  return text
    .split('\n')
    .flatMap((line) => broken(line, columns, 2))
    .join('\n')
}

/** The widest that prose is written, however wide the terminal is. */
const proseColumns = 110

/**
 * Help for a terminal this wide: a paragraph of prose is broken as a whole, wherever its source breaks it, and has no
 * indent. Everything else is {@link fitted}. Unchanged without a terminal.
 */
export function fittedHelp(text: string, columns: number | undefined): string {
  if (columns === undefined) return text
  return text
    .replace(/^(\S(?:(?! {2}).)*)\n(?=\S(?:(?! {2}).)*$)/gm, '$1 ')
    .split('\n')
    .flatMap((line) =>
      /^\S(?:(?! {2}).)*$/.test(line) ? broken(line, Math.min(columns, proseColumns), 0) : broken(line, columns, 2),
    )
    .join('\n')
}

function broken(line: string, columns: number, indentColumns: number): string[] {
  const [table = ''] = /^ *\S+(?: \S+)* {2,}(?=\S)/.exec(line) ?? []
  const hanging = columns - table.length >= 24 ? table.length : 0
  const indent = ' '.repeat(hanging || (columns > 10 ? indentColumns : 0))
  const lines: string[] = []
  let rest = line
  while (rest.length > columns) {
    // A space right after the last column may be used too. Leading spaces are no place to break a line.
    const [start = ''] = /^\s*/.exec(rest) ?? []
    const space = rest.lastIndexOf(' ', columns)
    const end = space > start.length ? space : columns
    lines.push(rest.slice(0, end).trimEnd())
    rest = indent + rest.slice(end).trimStart()
  }
  return [...lines, rest]
}

/** The mean value of each column, for the values so far. */
export function resampled(values: readonly (number | undefined)[], length: number, columns: number): number[] {
  const count = Math.min(length, columns)
  const means: number[] = []
  for (let column = 0; column < count; column += 1) {
    const first = Math.floor((column * length) / count)
    const last = Math.max(first + 1, Math.floor(((column + 1) * length) / count))
    const part = values.slice(first, last).filter((value) => value !== undefined)
    if (part.length === 0) break
    means.push(part.reduce((sum, value) => sum + value, 0) / part.length)
  }
  return means
}

/** The lines of a panel, heading first. Always `rows + 1` lines. */
export function barPanel(panel: BarPanel, withColor: boolean): string[] {
  const means = resampled(panel.values, panel.length, panel.columns - labelWidth)
  const highest = means.reduce((a, b) => Math.max(a, b), panel.atLeast ?? 0)
  const lines = [panel.title]
  for (let row = panel.rows - 1; row >= 0; row -= 1) {
    const bars = means.map((mean) => {
      const eighth = Math.round(((highest > 0 ? mean / highest : 0) * panel.rows - row) * 8)
      return eighths[Math.min(8, Math.max(0, eighth))]
    })
    const label = row === panel.rows - 1 ? short(highest) : row === 0 ? '0' : ''
    lines.push(`${label.padStart(labelWidth - 2)} │${colored(bars.join(''), panel.color, withColor)}`)
  }
  return lines
}

/** A progress bar; `share` is from 0 to 1. */
export function progressBar(share: number, columns: number): string {
  const full = Math.round(share * columns)
  return '█'.repeat(full) + '░'.repeat(Math.max(0, columns - full))
}

/** A text table: the first column aligned to the left, the others to the right. */
export function textTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
  return rows.map((row) => `${line(row).trimEnd()}\n`).join('')
}
