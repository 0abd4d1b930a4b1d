// The types of repository-files.mjs, for the tests.

export function repositoryFiles(root: string): string[]
