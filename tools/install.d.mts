// The types of install.mjs, for the tests.

export function ensureInstalled(
  root: string,
  directory?: string,
  options?: { readonly isProgram?: boolean },
): Promise<void>
