// The elements of the page, found by their ids: one that is missing is a mistake of ours, and said at once.

/** The element with an id. */
export function element<Kind extends Element = HTMLElement>(id: string): Kind {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`The page has no element #${id}.`)
  return found as unknown as Kind
}

/** Writes a text into an element, if it is another one. */
export function write(id: string, text: string): void {
  const found = element(id)
  if (found.textContent !== text) found.textContent = text
}

/** A new element with a class and a text. */
export function made(tag: string, className: string, text: string): HTMLElement {
  const fresh = document.createElement(tag)
  fresh.className = className
  fresh.textContent = text
  return fresh
}
