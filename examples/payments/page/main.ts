// The page: one payment, and beside it the storm.

import { startPayment } from './payment.js'
import { startStorm } from './storm.js'

startStorm()
void startPayment()
