// What goes over the wire for one operation: the texts that a client of `pg` sends, and how often it waits for the
// server.

/**
 * Watches the next operation on a pool. Each answer of the server ends with one message that says it is ready again:
 * these are counted, so that several statements in one text are the one round trip that they are.
 * @param {import('pg').Pool} pool
 * @param {() => Promise<unknown>} operation
 * @returns {Promise<{ count: number, texts: string[], sent: any[] }>} `sent`: what the client was given, in order.
 */
export async function roundTripsOf(pool, operation) {
  /** @type {string[]} */
  const texts = []
  /** @type {any[]} */
  const sent = []
  let count = 0
  const client = await pool.connect()
  const { connection, query } = /** @type {any} */ (client)
  const onReady = () => {
    count += 1
  }
  connection.on('readyForQuery', onReady)
  Object.assign(client, {
    query: (/** @type {any[]} */ ...values) => {
      const [config] = values
      sent.push(config)
      texts.push(typeof config === 'string' ? config : config.text)
      return query.apply(client, values)
    },
  })
  client.release()
  await operation()
  connection.removeListener('readyForQuery', onReady)
  delete (/** @type {any} */ (client).query)
  return { count, texts, sent }
}
