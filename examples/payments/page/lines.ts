// A list of lines, each with a name and with chips that are added as things happen. The oldest lines go.

import { made } from './elements.js'

const mostLines = 30

/** The lines of a list, by ids. */
export class Lines<Id> {
  readonly #list: HTMLElement
  readonly #known = new Map<Id, HTMLElement>()

  constructor(list: HTMLElement) {
    this.#list = list
  }

  /** Adds a chip to the line of an id. @param who Names the line, where it is new. */
  chip(id: Id, who: () => string, text: string, kind: string): void {
    let line = this.#known.get(id)
    if (line === undefined) {
      line = this.#add(who())
      this.#known.set(id, line)
    }
    line.append(made('span', `chip ${kind}`, text))
  }

  /** Adds a line of the page's own. */
  note(text: string, kind: string): void {
    this.#add('').append(made('span', `chip ${kind}`, text))
  }

  /** From now on the ids mean other things. What is shown stays. */
  forget(): void {
    this.#known.clear()
  }

  /** Begins anew. */
  clear(): void {
    this.forget()
    this.#list.replaceChildren()
  }

  #add(who: string): HTMLElement {
    const line = document.createElement('li')
    line.append(made('span', 'who', who))
    this.#list.append(line)
    while (this.#list.childElementCount > mostLines) this.#list.firstElementChild?.remove()
    for (const [id, known] of this.#known) if (!known.isConnected) this.#known.delete(id)
    return line
  }
}
