import { describe, expect, it } from 'vitest'
import { giveBack, takeWorkspace, type Workspace } from './workspace.js'

const largestKept = 262_144

function load(workspace: Workspace, size: number): void {
  workspace.sourceOf(size).fill(0x20)
  workspace.begin(size, false)
}

describe('the workspace', () => {
  it('is kept from one document to the next', () => {
    const first = takeWorkspace()
    load(first, largestKept)
    giveBack(first)
    expect(takeWorkspace()).toBe(first)
  })

  it('belongs to one pass at a time', () => {
    const first = takeWorkspace()
    giveBack(first)
    const outer = takeWorkspace()
    const inner = takeWorkspace()
    expect(outer).toBe(first)
    expect(inner).not.toBe(outer)
    giveBack(inner)
    giveBack(outer)
  })

  it('is not kept once it has become large', () => {
    const first = takeWorkspace()
    load(first, largestKept + 1)
    giveBack(first)
    expect(takeWorkspace()).not.toBe(first)
  })

  it('is not kept once its text has become large, though the source was small', () => {
    const first = takeWorkspace()
    const source = new TextEncoder().encode(`[${Array.from({ length: 20_000 }, () => '1e20').join(',')}]`)
    first.sourceOf(source.length).set(source)
    first.begin(source.length, false)
    first.document.run(1)
    giveBack(first)
    expect(takeWorkspace()).not.toBe(first)
  })
})
