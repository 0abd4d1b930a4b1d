import fc from 'fast-check'
import { describe } from 'vitest'
import { property } from '../../test/property.js'
import { scopeKind } from './live-scope.js'

// A tree of scopes, each waiting some turns before and after its children, with background work that outlives it.
interface Plan {
  readonly kind: 0 | 1
  readonly turns: number
  readonly waits: boolean
  readonly throws: boolean
  readonly children: readonly Plan[]
}

const plansOfDepth = (depth: number): fc.Arbitrary<Plan> =>
  fc.record({
    kind: fc.constantFrom(0 as const, 1 as const),
    turns: fc.nat(3),
    waits: fc.boolean(),
    throws: fc.boolean(),
    children: depth === 1 ? fc.constant([]) : fc.array(plansOfDepth(depth - 1), { maxLength: 2 }),
  })

interface Node {
  readonly kind: 0 | 1
  readonly parent: Node | undefined
  live: boolean
}

describe('any tree of scopes', () => {
  const kinds = [scopeKind<Node>('zero'), scopeKind<Node>('one')] as const

  // What the definition says: the nearest live node of the kind, upward from where the code was started.
  const expected = (at: Node | undefined, kind: 0 | 1): Node | undefined => {
    let node = at
    while (node !== undefined && !(node.live && node.kind === kind)) node = node.parent
    return node
  }

  property(
    'shows to all code, background work included, the nearest live scope of each kind',
    [fc.array(plansOfDepth(3), { minLength: 1, maxLength: 3 })],
    async (forest) => {
      const background: Promise<void>[] = []
      const check = (at: Node | undefined) => {
        for (const kind of [0, 1] as const) {
          if (kinds[kind].current() !== expected(at, kind)) throw new Error('another scope than the model says')
        }
      }
      const watch = async (at: Node | undefined) => {
        for (let turn = 0; turn < 12; turn += 1) {
          await undefined
          check(at)
        }
      }
      const grow = (plan: Plan, parent: Node | undefined): unknown => {
        const node: Node = { kind: plan.kind, parent, live: true }
        const end = () => {
          node.live = false
        }
        const asynchronous = async (): Promise<void> => {
          check(node)
          background.push(watch(node))
          const children = plan.children.map((child) => grow(child, node))
          for (let turn = 0; turn < plan.turns; turn += 1) {
            await undefined
            check(node)
          }
          if (plan.waits) await Promise.allSettled(children)
          else
            background.push(
              ...children.map((child) =>
                Promise.resolve(child).then(
                  () => undefined,
                  () => undefined,
                ),
              ),
            )
          check(node)
          if (plan.throws) throw new Error('planned')
        }
        // The model node must end in the same microtask as the frame: by a handler attached just before the scope's
        // own.
        const work = () => {
          const promise = asynchronous()
          void promise.then(end, end)
          return promise
        }
        return kinds[plan.kind].run(node, work)
      }
      const trees = forest.map((plan) => grow(plan, undefined))
      await Promise.allSettled(trees)
      for (let settled = 0; settled < background.length; settled += 1) await background[settled]
      check(undefined)
    },
  )
})
