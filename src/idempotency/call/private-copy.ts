// A copy of an input that nobody else holds, so that a body that changes its input changes nothing but its own copy.

/**
 * Copies plain objects and arrays, at any depth; references stay shared where they were, and cycles stay cycles. Everything else (instances of classes, dates,
 * buffers, maps, functions) is the same object in the copy.
 */
export function privateCopy<Value>(value: Value): Value {
  if (!isPlain(value)) return value
  const copy = shallow(value)
  // Most inputs are flat, and need no memory of what was copied.
  let copies: Map<object, object> | undefined
  const pending: object[] = [copy]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const container = next as Record<string, unknown>
    for (const name of Object.keys(container)) {
      const member = container[name]
      if (!isPlain(member)) continue
      copies ??= new Map([[value, copy]])
      let inner = copies.get(member)
      if (inner === undefined) {
        inner = shallow(member)
        copies.set(member, inner)
        pending.push(inner)
      }
      container[name] = inner
    }
  }
  return copy as Value
}

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === Array.prototype || prototype === null
}

// A spread takes `__proto__` for the member it is.
function shallow(value: object): object {
  if (Array.isArray(value)) return value.slice()
  const copy = { ...value }
  return Object.getPrototypeOf(value) === null ? Object.setPrototypeOf(copy, null) : copy
}
