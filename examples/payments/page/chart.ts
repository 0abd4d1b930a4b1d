// The chart of a storm: calls per second as areas, what was answered in time as a line, the capacity as another.

import type { StormSecond } from 'reprise/simulator'
import { element } from './elements.js'

/** What the chart is drawn over. */
export interface Scene {
  readonly seconds: number
  readonly capacity: number
  readonly triggerAtSeconds: number
  readonly triggerSeconds: number
  /** Whether the service recognises repeats. */
  readonly isSafe: boolean
}

const height = 60

/** A chart that is drawn again with every second. */
export class Chart {
  readonly #scene: Scene

  constructor(scene: Scene) {
    this.#scene = scene
    const trigger = element<SVGRectElement>('chart-trigger')
    trigger.setAttribute('x', String(scene.triggerAtSeconds))
    trigger.setAttribute('width', String(scene.triggerSeconds))
    element<SVGPathElement>('chart-repeats').setAttribute('class', scene.isSafe ? 'safe' : 'unsafe')
  }

  /** Draws what has been played so far. */
  draw(series: readonly StormSecond[]): void {
    const { capacity, seconds } = this.#scene
    const highest = series.reduce((most, { attempts }) => Math.max(most, attempts), capacity * 1.25)
    const y = (count: number): string => (height - (count / highest) * height).toFixed(2)
    const steps = (of: (second: StormSecond) => number): string[] =>
      series.map((second) => `V${y(of(second))}H${second.second + 1}`)
    const area = (of: (second: StormSecond) => number): string => `M0,${height}${steps(of).join('')}V${height}Z`
    // All calls first, the first ones over them: what is left to see are the repeats.
    path(
      'chart-repeats',
      area(({ attempts }) => attempts),
    )
    path(
      'chart-first',
      area(({ attempts, offered }) => Math.min(attempts, offered)),
    )
    path('chart-capacity', `M0,${y(capacity)}H${seconds}`)
    path('chart-goodput', `M0,${y(series[0]?.goodput ?? 0)}${steps(({ goodput }) => goodput).join('')}`)
  }
}

function path(id: string, data: string): void {
  element<SVGPathElement>(id).setAttribute('d', data)
}
