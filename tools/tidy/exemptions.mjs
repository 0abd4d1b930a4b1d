// Exceptions from the laws of size, each with its reason. One that is no longer needed is itself a finding.

/** Functions over 70 lines: `path#name` → why it cannot be two. @type {Readonly<Record<string, string>>} */
export const longFunctions = {
  'src/transaction/run/attempt.ts#attemptOnce':
    'the steps of a transaction in their order; a promise for each part would be a good share of what one costs',
}

/**
 * Folders with more than 12 source files: path → how many, and why.
 * @type {Readonly<Record<string, { files: number, why: string }>>}
 */
export const largeModules = {}

/**
 * Sources with logic but without a test in their folder: path → where it is tested instead.
 * @type {Readonly<Record<string, string>>}
 */
export const testedElsewhere = {}
