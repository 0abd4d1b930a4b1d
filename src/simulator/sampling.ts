// Draws from the distributions that the models need, out of the kernel's uniform chance.

import type { Random } from '../kernel/index.js'

/** A draw from the exponential distribution with this mean, by inversion. Times between events of a Poisson process. */
export function exponential(random: Random, mean: number): number {
  return -mean * Math.log(1 - random.next())
}

/** A draw from the normal distribution (Box and Muller, 1958). One of the two values of a pair is left unused. */
export function normal(random: Random, mean: number, deviation: number): number {
  const radius = Math.sqrt(-2 * Math.log(1 - random.next()))
  return mean + deviation * radius * Math.cos(2 * Math.PI * random.next())
}
