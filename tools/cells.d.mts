// The types of cells.mjs, for the tests.

export interface Cell {
  readonly name: string
  readonly files?: RegExp
  readonly matrix?: string
}

export const cells: readonly Cell[]
export const longCells: readonly string[]
export const poolerCells: readonly string[]
export function cellOf(path: string): string | undefined
