// The recipes of CONTRIBUTING.md: blocks that name the file they make or change.

import { fences } from '../markdown.js'

/** A block of a recipe: the whole text of a new file, or lines to add to one. */
export interface RecipeStep {
  readonly path: string
  readonly isDiff: boolean
  readonly text: string
}

/** Every block of CONTRIBUTING.md that names a file, in order. */
export function recipeSteps(): RecipeStep[] {
  return fences('CONTRIBUTING.md').flatMap(({ info, text }) => {
    const [kind, path] = info.split(' ')
    return path === undefined ? [] : [{ path, isDiff: kind === 'diff', text }]
  })
}

/** Adds the lines marked by `+` where the lines around them stand, one after another, in the file. */
export function applyDiff(source: string, diff: string): string {
  const lines = diff.replace(/\n$/, '').split('\n')
  const before = lines.filter((line) => !line.startsWith('+')).map((line) => line.slice(1))
  const after = lines.map((line) => line.slice(1))
  const found = source.split(`${before.join('\n')}\n`)
  if (found.length !== 2) throw new Error(`the lines around the change stand ${found.length - 1} times in the file`)
  return found.join(`${after.join('\n')}\n`)
}
