// The laws of form, kept by a machine: `npm run check -- tidy` and test/tidy.test.ts hold them against the repository.

import { Refusal } from './process.mjs'
import { documentLaws } from './tidy/documents.mjs'
import { formLaws } from './tidy/form.mjs'
import { meaningLaws } from './tidy/meaning.mjs'
import { treeOfTexts, treeOnDisk } from './tidy/tree.mjs'

export { treeOfTexts, treeOnDisk }

/** Every law. A new one needs a violation in test/tidy.test.ts, which insists on it. */
export const laws = [...formLaws, ...meaningLaws, ...documentLaws]

/** Refuses with everything that breaks a law. */
export function tidy(/** @type {string} */ root) {
  const tree = treeOnDisk(root)
  const broken = laws.flatMap(({ name, why, find }) => {
    const findings = find(tree)
    return findings.length === 0 ? [] : [`${name}: ${why}\n${findings.map((finding) => `  ${finding}`).join('\n')}`]
  })
  if (broken.length > 0) throw new Refusal(broken.join('\n\n'))
  return `${laws.length} laws hold`
}
