// `reprise discard`: a person gives a dead letter up, and says why.

import { deadLetters } from '../../messaging/index.js'
import type { Io } from '../io.js'
import { type Command, type GivenOptions, UsageError } from '../option-table.js'
import { storeOptions, withStore } from '../store/open-store.js'
import { jsonOption, writeAnswer } from '../store/output.js'
import { actorOf } from '../store/which-record.js'
import { isOneLetter, letterNamed, letterOptions, noSuchLetter } from './which-letter.js'

/** The command `reprise discard`. */
export const discardCommand: Command = {
  summary: 'gives a dead letter up, with a reason',
  about: `reprise discard --url URL --reader NAME --id ID --reason TEXT

The message is not delivered, or not handled, and the later ones of its key go on. A relay sends a message without
data under the same id and place in its stead, which says so: those who count see no hole. A consumer goes on behind
it at once, and does not handle it when it comes again. What it was to do, nobody does: redrive it if you can.

  reprise discard --url sqlite:data/app.db --reader receipts --id 0198c0de-… --reason 'a test order'
`,
  options: [
    storeOptions,
    // One at a time: each of them is lost for good.
    { ...letterOptions, options: letterOptions.options.filter(({ name }) => name !== 'key' && name !== 'code') },
    {
      title: 'Options',
      options: [
        { name: 'reason', kind: 'text', text: 'why; kept with the letter, and sent by a relay' },
        { name: 'actor', kind: 'text', value: 'NAME', text: 'who decides; kept with it (the environment’s USER)' },
        jsonOption,
      ],
    },
  ],
  exitCodes: `0 discarded, 1 it failed, or may have been written (UPKEEP_UNKNOWN: do it again), 2 used wrongly, 3 there is nothing to discard: the letter is not there, is decided already, or is closed.`,
  run: runDiscard,
}

async function runDiscard(given: GivenOptions, io: Io): Promise<void> {
  if (!isOneLetter(given)) throw new UsageError('which letter? --reader and --id')
  const reason = given.text('reason')
  if (reason === undefined) throw new UsageError('--reason is missing: say why nobody needs it')
  await withStore(given, io, async (store) => {
    const letters = deadLetters(store)
    const which = await letterNamed(store, given)
    if (which === undefined) throw noSuchLetter()
    await letters.discard(which, { actor: actorOf(given, io), reason, deadline: '30s' })
    const state = (await letters.show(which, { deadline: '30s' }))?.state ?? 'closed'
    const text = state === 'closed' ? 'discarded\n' : 'discarded: its relay sends a message that says so\n'
    writeAnswer(given, io, { json: { id: which.id, state }, text })
  })
}
