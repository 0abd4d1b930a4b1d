// The types of install.mjs, for the tests.

export function ensureInstalled(
  root: string,
  directory?: string,
  options?: { readonly isProgram?: boolean },
): Promise<void>

export function runNpm(
  args: readonly string[],
  options: { readonly cwd: string; readonly quiet?: boolean },
): Promise<{ readonly code: number; readonly output: string }>
