// The laws of form, kept by a machine: `npm run check -- tidy` and test/tools/tidy.test.ts hold them against the
// repository.

import { Refusal } from './process.mjs'
import { documentLaws } from './tidy/documents.mjs'
import { formHints, formLaws } from './tidy/form.mjs'
import { meaningLaws } from './tidy/meaning.mjs'
import { treeOfTexts, treeOnDisk } from './tidy/tree.mjs'

export { treeOfTexts, treeOnDisk }

/** Every law. A new one needs a violation in test/tools/tidy.test.ts, which insists on it. */
export const laws = [...formLaws, ...meaningLaws, ...documentLaws]

/** What is worth a look and is no law. */
export const hints = formHints

/** How many findings of a hint are printed; the rest is counted. */
const shownOfHint = 10

/**
 * What is found for each of some laws, as text; those that hold are left out.
 * @param {import('./tidy/tree.mjs').Tree} tree
 * @param {readonly import('./tidy/form.mjs').Law[]} asked
 * @param {number} [most] findings shown of each; default: all
 */
function reports(tree, asked, most = Number.POSITIVE_INFINITY) {
  return asked.flatMap(({ name, why, find }) => {
    const findings = find(tree)
    if (findings.length === 0) return []
    const more = findings.length > most ? [`and ${findings.length - most} more`] : []
    const lines = [...findings.slice(0, most), ...more].map((line) => `  ${line}`)
    return [`${name}: ${why}\n${lines.join('\n')}`]
  })
}

/** Refuses with everything that breaks a law. Otherwise the answer is what the hints found. */
export function tidy(/** @type {string} */ root) {
  const tree = treeOnDisk(root)
  const broken = reports(tree, laws)
  if (broken.length > 0) throw new Refusal(broken.join('\n\n'))
  return { hint: reports(tree, hints, shownOfHint).join('\n\n') }
}
