// A process that passes three fault points, as its environment arms them, and says on stdout how far it came.

import { faultPoint } from 'reprise/kernel'
import { armFromEnvironment } from 'reprise/testing'

armFromEnvironment()
for (const point of ['one', 'two', 'one']) {
  try {
    await faultPoint(point)
    console.log(point)
  } catch (error) {
    console.log(`${point}: ${/** @type {Error} */ (error).name}`)
  }
}
