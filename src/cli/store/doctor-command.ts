// `reprise doctor`: what in a live store would break a guarantee.

import type { Io } from '../io.js'
import type { Command, GivenOptions } from '../option-table.js'
import { storeOptions, withStore } from './open-store.js'
import { jsonOption, writeAnswer } from './output.js'

/** The command `reprise doctor`. */
export const doctorCommand: Command = {
  summary: 'what in the store would break a guarantee',
  about: `reprise doctor --url URL [options]

Looks at a live store, its settings, its tables and its room, and says what would break a promise or may do so
some day, each with its fix. It changes nothing: what it writes it rolls back.

  reprise doctor --url postgres://app@db.example/app
`,
  options: [storeOptions, { title: 'Options', options: [jsonOption] }],
  exitCodes: `0 nothing is broken (risks and notes are printed), 1 something is, or the store cannot be reached, 2 used
wrongly.`,
  run: runDoctor,
}

async function runDoctor(given: GivenOptions, io: Io): Promise<void> {
  await withStore(given, io, async (store) => {
    const { engine } = store.manifest
    const findings = await store.doctor()
    const lines = findings.map(({ severity, code, what, fix }) => `${severity} ${code}\n  ${what}\n  fix: ${fix}\n`)
    const found = findings.length === 0 ? `${engine}: nothing was found\n` : lines.join('')
    const budget = store.budget?.data
    // Programs that say nothing else have the same one.
    const shared =
      budget?.kind === 'token'
        ? `budget of the transactions of a process, by default: ${budget.maxTokens} tokens, ${budget.tokenRatio} back with each commit\n`
        : ''
    writeAnswer(given, io, { json: { engine, findings, budget }, text: `${found}${shared}` })
    if (findings.some(({ severity }) => severity === 'broken')) io.exit(1)
  })
}
