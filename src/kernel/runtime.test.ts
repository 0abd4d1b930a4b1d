import * as crypto from 'node:crypto'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { builtin, environmentVariable } from './runtime.js'

afterEach(() => {
  vi.unstubAllGlobals()
})

describe('builtin', () => {
  it('gives the module of Node', () => {
    expect(builtin<typeof import('node:crypto')>('node:crypto')?.createHash).toBe(crypto.createHash)
    expect(builtin<typeof import('node:async_hooks')>('node:async_hooks')?.AsyncLocalStorage).toBeTypeOf('function')
    expect(builtin<typeof import('node:diagnostics_channel')>('node:diagnostics_channel')?.channel).toBeTypeOf(
      'function',
    )
    expect(builtin<typeof import('node:fs/promises')>('node:fs/promises')?.link).toBeTypeOf('function')
    expect(builtin<typeof import('node:util')>('node:util')?.types.isPromise).toBeTypeOf('function')
  })

  it.each([
    ['there is no process', undefined],
    ['a bundler put a bare process in its place', { env: {} }],
    ['the runtime does not know the module', { getBuiltinModule: () => undefined }],
  ])('gives nothing where %s', (_, stand) => {
    vi.stubGlobal('process', stand)
    const found = builtin<typeof import('node:crypto')>('node:crypto')
    vi.unstubAllGlobals()
    expect(found).toBeUndefined()
  })
})

it('gives variables of the environment where there is one', () => {
  vi.stubEnv('REPRISE_ENVIRONMENT', 'staging')
  expect([environmentVariable('REPRISE_ENVIRONMENT'), environmentVariable('REPRISE_NEVER_SET')]).toEqual([
    'staging',
    undefined,
  ])
  vi.unstubAllEnvs()
  for (const stand of [undefined, {}]) {
    vi.stubGlobal('process', stand)
    const found = environmentVariable('REPRISE_ENVIRONMENT')
    vi.unstubAllGlobals()
    expect(found).toBeUndefined()
  }
})
