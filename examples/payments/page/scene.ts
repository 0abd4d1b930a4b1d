// The scene of a storm as it is at one second: a client, an arrow for each call, the service, the load that it is
// offered, and the bucket that decides whether there are retries.

import type { StormSecond } from 'reprise/simulator'
import { isInVain } from './chart.js'
import { element, made, write } from './elements.js'

/** What the client calls. `greet` may be repeated by its nature; `charge` only where the service knows keys. */
export type Method = 'greet' | 'charge'

/** What the scene is drawn of. */
export interface SceneOptions {
  readonly method: Method
  readonly knowsKeys: boolean
  readonly repeats: number
  readonly capacity: number
  readonly maxTokens: number
  readonly triggerAtSeconds: number
  readonly triggerSeconds: number
}

const stormShare = 4
/** Below this share of intents that are answered in time, a service is said to answer nobody. */
const nobodyShare = 0.1
const wellShare = 0.95

/** A scene that is drawn again with every second. */
export class Scene {
  readonly #options: SceneOptions
  readonly #arrows: HTMLElement[]
  /** The highest load so far, as a multiple of the capacity: the scale reaches it. */
  #reached = 0

  constructor(options: SceneOptions) {
    this.#options = options
    const { method, knowsKeys, repeats } = options
    write('method-call', method === 'greet' ? 'greet("Ada")' : 'charge("Ada", 1200)')
    write('method-kind', kindOf(method, knowsKeys))
    element('method-kind').className = `chip ${isSafe(options) ? 'good' : 'bad'}`
    write('arrows-count', `1 call + ${repeats} ${repeats === 1 ? 'retry' : 'retries'} at most`)
    this.#arrows = Array.from({ length: repeats + 1 }, (_, index) =>
      made('li', '', index === 0 ? 'call' : `retry ${index}`),
    )
    element('arrows').replaceChildren(...this.#arrows)
  }

  /** Draws a second. */
  draw(last: StormSecond): void {
    this.#drawArrows(last)
    this.#drawService(last)
    this.#drawLoad(last)
    this.#drawBucket(last)
  }

  #drawArrows(last: StormSecond): void {
    const perIntent = last.offered === 0 ? 1 : last.attempts / last.offered
    const kind = isSafe(this.#options) ? 'safe' : 'unsafe'
    const vain = isInVain(last) ? ' vain' : ''
    for (const [index, arrow] of this.#arrows.entries()) {
      const isSent = index === 0 || perIntent >= index + 0.5
      const className = isSent ? `${index === 0 ? 'first' : kind}${vain}` : 'unsent'
      if (arrow.className !== className) arrow.className = className
    }
  }

  #drawService({ second, goodput, offered }: StormSecond): void {
    const { triggerAtSeconds, triggerSeconds } = this.#options
    const share = offered === 0 ? 1 : goodput / offered
    const isTriggered = second >= triggerAtSeconds && second < triggerAtSeconds + triggerSeconds
    const [state, kind] =
      share < nobodyShare
        ? ['flatlined', 'bad']
        : isTriggered
          ? ['browned out', 'warn']
          : share < wellShare
            ? ['struggling', 'warn']
            : ['well', 'good']
    write('service-state', state ?? '')
    element('service').className = `party ${kind}`
    write('service-share', `${Math.min(100, Math.round(share * 100))} % answered`)
    write(
      'service-cause',
      isTriggered ? 'trigger: on' : second < triggerAtSeconds ? 'trigger: not yet' : 'trigger: over',
    )
  }

  #drawLoad({ attempts }: StormSecond): void {
    const share = attempts / this.#options.capacity
    this.#reached = Math.max(this.#reached, share)
    const most = Math.max(2, Math.ceil(this.#reached))
    gauge('offered', share, most, share > 1 ? 'bad' : 'good')
    write('offered-value', `${attempts} / s · ${share.toFixed(1)} × capacity`)
    write('offered-word', share > stormShare ? 'RETRY STORM' : share > 1 ? 'over capacity' : 'within capacity')
    element('offered-capacity').style.left = `${100 / most}%`
    write('offered-most', `${most} ×`)
  }

  #drawBucket({ tokens }: StormSecond): void {
    const { maxTokens } = this.#options
    const isPaused = tokens !== undefined && tokens < maxTokens / 2
    gauge('bucket', tokens ?? 0, maxTokens, isPaused ? 'bad' : 'good')
    write('bucket-value', tokens === undefined ? 'no budget' : `${tokens.toFixed(1)} of ${maxTokens}`)
    const flows = 'Above half: a failure takes a token, a success gives a tenth back, and retries flow.'
    const paused = 'Below half: retries PAUSE until successes fill it again.'
    write(
      'bucket-word',
      tokens === undefined ? 'OFF: no cap on retries, each failure is sent again.' : isPaused ? paused : flows,
    )
  }
}

/** Whether a repeat has no effect of its own. */
export function isSafe({ method, knowsKeys }: Pick<SceneOptions, 'method' | 'knowsKeys'>): boolean {
  return method === 'greet' || knowsKeys
}

function kindOf(method: Method, knowsKeys: boolean): string {
  if (method === 'greet') return 'idempotent'
  return knowsKeys ? 'safe by its key' : 'not idempotent'
}

// A meter for those who hear the page, and a gauge for those who see it.
function gauge(id: string, value: number, most: number, kind: string): void {
  const meter = element<HTMLMeterElement>(id)
  meter.max = most
  meter.value = value
  const level = element(`${id}-gauge`).firstElementChild as HTMLElement
  level.className = `level ${kind}`
  // Custom property: a level goes to the right in one gauge, and up in the other.
  level.style.setProperty('--level', `${Math.min(1, value / most) * 100}%`)
}
