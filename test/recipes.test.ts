// The changes that CONTRIBUTING.md shows fit the files as they are. That the result works is tested by npm run
// test:tools.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { root } from './markdown.js'
import { applyDiff, recipeSteps } from './tools/recipe.js'

const diffs = recipeSteps().filter(({ isDiff }) => isDiff)

it.each(diffs)('$path can be changed as CONTRIBUTING.md shows', ({ path, text }) => {
  const before = readFileSync(join(root, path), 'utf8')
  expect(applyDiff(before, text)).not.toBe(before)
})
