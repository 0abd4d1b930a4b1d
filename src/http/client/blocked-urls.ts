// What fetch refuses before it sends anything. Refused here as well, before an attempt: the failure of fetch itself
// does not say that nothing was sent, so that the outcome of a write would be unknown.

// Fetch standard, 2.9 (port blocking).
const blockedPorts = new Set(
  `1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135 137
  139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720
  1723 2049 3659 4045 5060 5061 6000 6566 6665 6666 6667 6668 6669 6697 10080`.split(/\s+/),
)
// Fetch standard, 4.3 (scheme fetch); file: is left to the runtime, which refuses it at present.
const knownSchemes = ['http:', 'https:', 'about:', 'blob:', 'data:', 'file:']

/** Throws a TypeError, as fetch does, for a URL that no fetch of a runtime sends anything to. */
export function demandSendable({ protocol, port }: URL): void {
  if (!knownSchemes.includes(protocol)) throw new TypeError('fetch knows no such scheme')
  if (blockedPorts.has(port) && protocol.startsWith('http')) throw new TypeError('fetch does not send to this port')
}
