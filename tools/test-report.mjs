// What `npm test` says after the tests: how long each group took, the slowest files, and which cells ran.

import { cellOf, cells } from './cells.mjs'

/** @typedef {import('./closing-reporter.mjs').Counts} Counts */
/** @typedef {import('./closing-reporter.mjs').FileTime} FileTime */

/** How many of the slowest files are named. */
const slowestShown = 20

const seconds = (/** @type {number} */ ms) => `${(ms / 1_000).toFixed(1)} s`

const tests = (/** @type {readonly FileTime[]} */ files) => files.reduce((sum, file) => sum + file.tests, 0)

/**
 * Each group of tests, in the order in which they began: from the start of its first file to the end of its last, and
 * what its files took by themselves. Groups that run together share the time of the first kind.
 */
function groupLines(/** @type {readonly FileTime[]} */ files) {
  const names = [...new Set(files.map(({ group }) => group))]
  return names.map((name) => {
    const own = files.filter(({ group }) => group === name)
    const tookMs = Math.max(...own.map(({ endMs }) => endMs)) - Math.min(...own.map(({ startMs }) => startMs))
    const summedMs = own.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0)
    const what = `${own.length} files, ${tests(own)} tests, ${seconds(summedMs)} one after the other`
    return `  ${(name || 'all').padEnd(10)}${seconds(tookMs).padStart(9)}  ${what}`
  })
}

function slowestLines(/** @type {readonly FileTime[]} */ files) {
  const slowest = [...files].sort((a, b) => b.endMs - b.startMs - (a.endMs - a.startMs)).slice(0, slowestShown)
  return slowest.map(({ path, startMs, endMs }) => `  ${seconds(endMs - startMs).padStart(9)}  ${path}`)
}

/** What became of each cell, with the reason where something of it was skipped. */
function cellLines(/** @type {readonly FileTime[]} */ files) {
  const width = Math.max(...cells.map(({ name }) => name.length)) + 2
  return cells.map(({ name, matrix }) => {
    const own = files.filter(({ path }) => cellOf(path) === name)
    const skipped = own.reduce((sum, file) => sum + file.skipped, 0)
    const reasons = [...new Set(own.flatMap((file) => file.reasons))]
    const ran = own.length > 0 ? [`${tests(own) - skipped} run`] : matrix === undefined ? ['NOT RUN'] : []
    const left = skipped === 0 ? [] : [`${skipped} skipped${reasons.length > 0 ? ` (${reasons.join('; ')})` : ''}`]
    const rest = matrix === undefined ? [] : [`test:matrix: ${matrix}`]
    return `  ${name.padEnd(width)}${[...ran, ...left, ...rest].join(', ')}`
  })
}

/**
 * @param {readonly FileTime[]} files
 * @param {{ whole: boolean }} options whole: nothing was chosen by arguments, so that every cell should have run
 * @returns {string}
 */
export function reportOf(files, { whole }) {
  if (files.length === 0) return ''
  const parts = [['groups', ...groupLines(files)]]
  if (files.length > slowestShown) parts.push([`the ${slowestShown} slowest files`, ...slowestLines(files)])
  if (whole) parts.push(['cells', ...cellLines(files)])
  return parts.map((lines) => lines.join('\n')).join('\n\n')
}
