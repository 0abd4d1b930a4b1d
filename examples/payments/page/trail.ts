// What happened to the key, live: the decisions that the service tells, one line for each call that reached it.

import { authorization, pause } from './calls.js'
import { element, made } from './elements.js'

/** A decision, as the service tells it. */
interface Told {
  readonly request: number
  readonly what: string
  readonly how?: string
  readonly status?: number
  readonly problem?: string
}

const mostLines = 30
const trail = element('trail')
/** The lines of calls, by the numbers that this life of the service gave them. */
const lines = new Map<number, HTMLElement>()
/** Calls that were claimed and not yet answered. */
const underWay = new Set<number>()
/** Calls whose answer was dropped: nothing more is to be said of them. */
const dropped = new Set<number>()
let calls = 0

/** Begins a new trail. */
export function clearTrail(): void {
  calls = 0
  lines.clear()
  trail.replaceChildren()
}

// A line of the page’s own.
function note(text: string, kind: string): void {
  const line = document.createElement('li')
  line.append(made('span', 'who', ''), made('span', `chip ${kind}`, text))
  add(line)
}

/** Watches for ever, also over restarts of the service. */
export async function watch(): Promise<never> {
  for (let isFirst = true; ; isFirst = false) {
    try {
      const response = await fetch('/drill/events', { headers: authorization })
      if (response.ok && response.body !== null) {
        trail.ariaBusy = 'false'
        if (!isFirst) note('the service is back', 'good')
        await follow(response.body).finally(lost)
      } else await pause(2_000)
    } catch {
      // gone; it may come back
    }
    await pause(200)
  }
}

// The next life of the service counts its calls from 1 again.
function lost(): void {
  trail.ariaBusy = 'true'
  if (underWay.size === 0) note('the service is gone', 'bad')
  for (const number of underWay) chip(number, 'process killed', 'bad')
  for (const known of [lines, underWay, dropped]) known.clear()
}

async function follow(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as never).getReader() as ReadableStreamDefaultReader<string>
  let unread = ''
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const events = (unread + part.value).split('\n\n')
    unread = events.pop() ?? ''
    for (const event of events) {
      if (event.startsWith('data: ')) show(JSON.parse(event.slice('data: '.length)) as Told)
    }
  }
}

function show({ request, what, how, status, problem }: Told): void {
  if (dropped.has(request)) return
  if (what === 'reprise.operation.claimed') {
    underWay.add(request)
    chip(request, 'claimed', '')
    return
  }
  underWay.delete(request)
  if (what === 'reprise.operation.executed') chip(request, 'committed', 'good')
  else if (what === 'reprise.operation.replayed') chip(request, 'replayed', 'calm')
  else if (what === 'cut') {
    dropped.add(request)
    chip(request, 'committed', 'good')
    chip(request, 'answer dropped', 'bad')
  } else if (what === 'reprise.http.answered') {
    if (how === 'refused') chip(request, `refused: ${problem}`, 'warn')
    chip(request, String(status), '')
  }
}

function chip(number: number, text: string, kind: string): void {
  let line = lines.get(number)
  if (line === undefined) {
    line = document.createElement('li')
    calls += 1
    line.append(made('span', 'who', `call ${calls}`))
    lines.set(number, line)
    add(line)
  }
  line.append(made('span', `chip ${kind}`, text))
}

function add(line: HTMLElement): void {
  trail.append(line)
  while (trail.childElementCount > mostLines) trail.firstElementChild?.remove()
}
