// Intents: a caller's keeper of keys. One key for each intent, kept until its outcome is definite.

export { fileIntents } from './file-intents.js'
export {
  type IntentAnswer,
  type Intents,
  type IntentsOptions,
  intents,
  isDefinite,
  type KeptIntent,
} from './intents.js'
export { type IntentStorage, type WebStorage, webStorage } from './storage.js'
export { type TableDomain, tableIntents } from './table-intents.js'
