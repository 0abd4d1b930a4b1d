// The chart of a storm: calls per second as areas, what was answered in time as a line, the capacity as another, with
// axes that reach as far as the calls do.

import type { StormSecond } from 'reprise/simulator'
import { element, made } from './elements.js'

/** What the chart is drawn over. */
export interface ChartOptions {
  readonly seconds: number
  readonly capacity: number
  readonly triggerAtSeconds: number
  readonly triggerSeconds: number
  /** Whether a repeat has no effect of its own. */
  readonly isSafe: boolean
}

const height = 60
const tickSeconds = 30
const mostTicks = 5

/** Whether a second is one in which retries help nobody: less than half of the intents were answered in time. */
export function isInVain({ goodput, offered }: StormSecond): boolean {
  return goodput < offered / 2
}

/** A chart that is drawn again with every second. */
export class Chart {
  readonly #options: ChartOptions
  #top = 0

  constructor(options: ChartOptions) {
    this.#options = options
    const trigger = element<SVGRectElement>('chart-trigger')
    trigger.setAttribute('x', String(options.triggerAtSeconds))
    trigger.setAttribute('width', String(options.triggerSeconds))
    element<SVGPathElement>('chart-repeats').setAttribute('class', options.isSafe ? 'safe' : 'unsafe')
    const ticks = Array.from({ length: options.seconds / tickSeconds + 1 }, (_, index) => index * tickSeconds)
    element('x-axis').replaceChildren(...ticks.map((second) => label(`${second} s`, 'left', second / options.seconds)))
  }

  /** Draws what has been played so far. */
  draw(series: readonly StormSecond[]): void {
    const { capacity, seconds, isSafe } = this.#options
    this.#scale(series.reduce((most, { attempts }) => Math.max(most, attempts), capacity * 1.25))
    const y = (count: number): string => (height - (count / this.#top) * height).toFixed(2)
    const steps = (of: (second: StormSecond) => number): string[] =>
      series.map((second) => `V${y(of(second))}H${second.second + 1}`)
    const area = (of: (second: StormSecond) => number): string => `M0,${height}${steps(of).join('')}V${height}Z`
    // All calls first, the first ones over them: what is left to see are the repeats.
    const all = area(({ attempts }) => attempts)
    // Unsafe ones are red as they are. Safe ones are no good news where nobody is answered.
    const vain = area((second) => (isSafe && isInVain(second) ? second.attempts : 0))
    const first = area(({ attempts, offered }) => Math.min(attempts, offered))
    path('chart-repeats', all)
    path('chart-vain', vain)
    path('chart-first', first)
    path('chart-capacity', `M0,${y(capacity)}H${seconds}`)
    path('chart-goodput', `M0,${y(series[0]?.goodput ?? 0)}${steps(({ goodput }) => goodput).join('')}`)
  }

  // The axis ends at a round number, at or above the highest that is reached.
  #scale(highest: number): void {
    const step = roundStep(highest / mostTicks)
    const top = step * Math.ceil(highest / step)
    if (top === this.#top) return
    this.#top = top
    const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step)
    element('y-axis').replaceChildren(...ticks.map((count) => label(count.toLocaleString('en'), 'bottom', count / top)))
    path('chart-grid', ticks.map((count) => `M0,${height - (count / top) * height}H${this.#options.seconds}`).join(''))
  }
}

/** The smallest of 1, 2 and 5 times a power of ten that is not below a number. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least))
  return ([1, 2, 5].find((times) => times * power >= least) ?? 10) * power
}

function label(text: string, side: 'left' | 'bottom', share: number): HTMLElement {
  const tick = made('span', '', text)
  tick.style[side] = `${share * 100}%`
  return tick
}

function path(id: string, data: string): void {
  element<SVGPathElement>(id).setAttribute('d', data)
}
