// Every code that the network classifier knows, and where it is proven: on a socket, by which test file, or
// constructed, because it cannot be met here. Each file checks at its end that it met the codes that are laid to it.

import { spawnSync } from 'node:child_process'

/** One code and its proof. */
export interface ProvenCode {
  readonly code: string
  /** The verdict on the code alone; with the system call `connect` it is always `no`. */
  readonly happened: 'no' | 'maybe'
  readonly proof: 'socket' | 'constructed'
  /** The test file that meets the code; only with `socket`. */
  readonly metIn?: 'network' | 'network-rare'
  /** Why the code is not met; only with `constructed`. */
  readonly why?: string
}

// The probe does what the tests do: a namespace, a change of its links and of its kernel settings, an end put to its
// sockets, and Perl for a router.
const probe = [
  'ip link set lo up',
  'ip link add probe0 type veth peer name probe1',
  'echo 1 > /proc/sys/net/ipv4/tcp_retries2',
  'ss -K -t dport = 1',
  "perl -MSocket -e 'socket(my $raw, 17, SOCK_RAW, 8) or die'",
].join(' && ')

/**
 * The options of `unshare` that give a process a network of its own, as root or as a user who may play root; undefined
 * where neither is permitted, or the system has no such thing.
 */
export const namespaceOptions: readonly string[] | undefined = [['-n'], ['-r', '-n']].find(
  (options) => spawnSync('unshare', [...options, 'sh', '-c', probe], { stdio: 'ignore' }).status === 0,
)

const met = { proof: 'socket', metIn: 'network' } as const
const rare = { proof: 'socket', metIn: 'network-rare' } as const
const constructed = (why: string) => ({ proof: 'constructed', why }) as const
const inNamespace = namespaceOptions ? rare : constructed('needs a network namespace, which is not permitted here')

/** The table of codes. */
export const provenCodes: readonly ProvenCode[] = [
  { code: 'ECONNREFUSED', happened: 'no', ...met },
  { code: 'EAI_AGAIN', happened: 'no', ...inNamespace },
  { code: 'UND_ERR_CONNECT_TIMEOUT', happened: 'no', ...met },
  { code: 'ERR_HTTP2_GOAWAY_SESSION', happened: 'no', ...rare },
  { code: 'ECONNRESET', happened: 'maybe', ...met },
  { code: 'EPIPE', happened: 'maybe', ...rare },
  { code: 'ECONNABORTED', happened: 'maybe', ...inNamespace },
  { code: 'ETIMEDOUT', happened: 'maybe', ...inNamespace },
  { code: 'ENETDOWN', happened: 'maybe', ...constructed('Linux tells it to packet sockets, and never to TCP') },
  { code: 'ENETUNREACH', happened: 'maybe', ...inNamespace },
  {
    code: 'EHOSTDOWN',
    happened: 'maybe',
    ...constructed('takes a router that answers by ICMP that it does not know the host'),
  },
  { code: 'EHOSTUNREACH', happened: 'maybe', ...inNamespace },
  { code: 'UND_ERR_SOCKET', happened: 'maybe', ...met },
  { code: 'UND_ERR_HEADERS_TIMEOUT', happened: 'maybe', ...met },
  { code: 'UND_ERR_BODY_TIMEOUT', happened: 'maybe', ...met },
  { code: 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH', happened: 'maybe', ...met },
  { code: 'UND_ERR_DESTROYED', happened: 'maybe', ...met },
  { code: 'ERR_STREAM_PREMATURE_CLOSE', happened: 'maybe', ...rare },
  { code: 'ERR_HTTP2_STREAM_ERROR', happened: 'maybe', ...met },
  { code: 'ERR_HTTP2_STREAM_CANCEL', happened: 'maybe', ...rare },
  { code: 'ERR_HTTP2_SESSION_ERROR', happened: 'maybe', ...rare },
]
