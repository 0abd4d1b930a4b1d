// The order in which vitest begins test files. Of each group those that take long come first: where it has not run
// before, vitest begins with the largest files, and the longest ones are short texts that drive many processes; begun
// last, they would run alone at the end. Groups that run together are spread evenly, so that at any time some files
// wait and others work.

import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What takes long, the longest first. */
const long: readonly RegExp[] = [
  /^test\/http\/conformance\//,
  /^test\/stores\/conformance\//,
  /^test\/(torture|walk)\//,
  /^test\/e2e\//,
  /^test\/faults\//,
  /^test\/(docs|examples)/,
]

/** Made and called by vitest, which is given this class as its sequencer. */
export class FileOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification): number => {
      const path = relative(this.ctx.config.root, moduleId)
      const rank = long.findIndex((pattern) => pattern.test(path))
      return rank === -1 ? long.length : rank
    }
    const sorted = (await super.sort(files)).sort((one, other) => rankOf(one) - rankOf(other))
    const places = new Map<TestSpecification, number>()
    for (const name of new Set(files.map(({ project }) => project.name))) {
      const group = sorted.filter(({ project }) => project.name === name)
      group.forEach((file, index) => void places.set(file, index / group.length))
    }
    const placeOf = (file: TestSpecification): number => places.get(file) ?? 0
    return sorted.sort((one, other) => placeOf(one) - placeOf(other))
  }
}
