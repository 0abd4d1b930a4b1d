// The types of node-versions.mjs, for the tests.

export function nodeVersions(root: string): number[]
export function findNode(root: string, major: number): { binary: string } | { why: string; installable: boolean }
export function otherNode(root: string, major: number): Promise<{ binary: string } | { why: string }>
