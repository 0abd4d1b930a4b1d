#!/usr/bin/env node
// The program `reprise`.

import { processIo } from './io.js'
import { runCommandLine } from './reprise.js'

void runCommandLine(process.argv.slice(2), processIo())
