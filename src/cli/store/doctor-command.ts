// `reprise doctor`: what in a store's live settings would break a promise.

import type { Io } from '../io.js'
import { type GivenOptions, type OptionGroup, optionHelp } from '../option-table.js'
import { storeOptions, withStore } from './open-store.js'
import { jsonOption, writeJson } from './output.js'

/** The options of the command. */
export const doctorOptions: readonly OptionGroup[] = [storeOptions, { title: 'Options', options: [jsonOption] }]

/** The help of the command. */
export function doctorHelp(): string {
  return `reprise doctor --url URL [options]

Looks at the live settings of a store, and says what would break a promise or may do so some day, each with its fix. It changes nothing.

  reprise doctor --url postgres://app@db.example/app

${optionHelp(doctorOptions)}
Exit codes: 0 nothing is broken (risks and notes are printed), 1 something is, or the store cannot be reached, 2 used wrongly.
`
}

/** Runs the command. */
export async function doctorCommand(given: GivenOptions, io: Io): Promise<void> {
  await withStore(given, io, async (store) => {
    const findings = await store.doctor()
    if (given.has('json')) writeJson(io, { engine: store.engine, findings })
    else if (findings.length === 0) io.write(`${store.engine}: nothing was found\n`)
    for (const { severity, code, what, fix } of given.has('json') ? [] : findings) {
      io.write(`${severity} ${code}\n  ${what}\n  fix: ${fix}\n`)
    }
    if (findings.some(({ severity }) => severity === 'broken')) io.exit(1)
  })
}
