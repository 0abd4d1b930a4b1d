// What happened to the key, live: the decisions that the service tells, one line for each call that reached it.

import { tillDrill } from './calls.js'
import { element } from './elements.js'
import type { ServiceEvent, ServiceListener } from './events.js'
import { Lines } from './lines.js'

const list = element('trail')
/** The lines of calls, by the numbers that this life of the service gave them. */
const lines = new Lines<number>(list)
/** Calls that were claimed and not yet answered. */
const underWay = new Set<number>()
/** Calls whose answer was dropped: nothing more is to be said of them. */
const dropped = new Set<number>()
let calls = 0

/** Whether the service can be followed now. */
export function isFollowed(): boolean {
  return list.ariaBusy === 'false'
}

/** Begins a new trail. */
export function clearTrail(): void {
  calls = 0
  lines.clear()
}

/** Draws the trail. */
export const trail: ServiceListener = {
  told({ request, drill, ...told }) {
    const isOther = request === undefined || drill?.startsWith(tillDrill) === true
    if (!isOther && !dropped.has(request)) show(request, told)
  },
  begun(isBack) {
    list.ariaBusy = 'false'
    if (isBack) lines.note('the service is back', 'good')
  },
  // The next life of the service counts its calls from 1 again.
  lost() {
    list.ariaBusy = 'true'
    if (underWay.size === 0) lines.note('the service is gone', 'bad')
    for (const number of underWay) chip(number, 'process killed', 'bad')
    for (const known of [underWay, dropped]) known.clear()
    lines.forget()
  },
}

function show(request: number, { what, how, status, problem }: Omit<ServiceEvent, 'request' | 'drill'>): void {
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
  lines.chip(number, () => `call ${++calls}`, text, kind)
}
