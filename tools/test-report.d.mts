// The types of test-report.mjs, for the tests.

export interface FileTime {
  readonly group: string
  readonly path: string
  readonly startMs: number
  readonly endMs: number
  readonly tests: number
  readonly skipped: number
  readonly reasons: readonly string[]
}

export function reportOf(files: readonly FileTime[], options: { readonly whole: boolean }): string
