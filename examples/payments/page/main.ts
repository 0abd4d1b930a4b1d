// The page: one payment, one receipt, and the storm.

import { canDrill } from './calls.js'
import { watch } from './events.js'
import { paymentWithoutDrills, startPayment } from './payment.js'
import { receiptWithoutDrills, startReceipt, way } from './receipt.js'
import { startStorm } from './storm.js'
import { trail } from './trail.js'

startStorm()
void start()

async function start(): Promise<void> {
  await Promise.all([startPayment(), startReceipt()])
  if ((await canDrill()) !== false) return watch([trail, way])
  paymentWithoutDrills()
  receiptWithoutDrills()
}
