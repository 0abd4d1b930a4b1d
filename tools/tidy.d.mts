// The types of tidy.mjs, for the tests: tools are plain JavaScript, so that they run before anything is installed.

export interface Tree {
  readonly paths: readonly string[]
}

export interface Exemptions {
  readonly longFunctions: Readonly<Record<string, string>>
  readonly largeModules: Readonly<Record<string, { readonly files: number; readonly why: string }>>
  readonly testedElsewhere: Readonly<Record<string, string>>
}

export interface Law {
  readonly name: string
  readonly why: string
  find(tree: Tree): string[]
}

export const laws: readonly Law[]
export const hints: readonly Law[]
export function tidy(root: string): { hint: string }
export function treeOnDisk(root: string): Tree
export function treeOfTexts(texts: Readonly<Record<string, string>>, exemptions?: Partial<Exemptions>): Tree
