// Which module may import which. Dependencies point one way: kernel, then telemetry, concepts, adapters, apps.
//
// A new module is added to the list below at the place where it belongs; a folder of src that is not listed is an
// error.

/** Lowest first: a concept may import what stands before it. */
const concepts = [
  'kernel',
  'telemetry',
  'drill',
  'identity',
  'retry',
  'atomicity',
  'intents',
  'transaction',
  'idempotency',
  'sequence',
  'messaging',
  'saga',
  'audit',
  'simulator',
  'testing',
]

/** May import every concept, and never each other. */
const adapters = ['stores', 'brokers', 'http', 'grpc', 'otel']

/** May import everything below them. */
const apps = ['cli', 'console']

/** These adapters hold several: one folder each, beside a folder that they share. */
const families = 'stores|brokers|http'
const shared = 'sql|core|wire'

/** They also run in a browser, so they reach Node's modules only through the kernel's runtime. */
const browserSafe = ['kernel', 'identity', 'intents', 'retry', 'simulator', 'grpc']

const isTest = '\\.(test|fuzz)\\.ts$'

/** @param {readonly string[]} names */
const inside = (names) => `^src/(${names.join('|')})/`

/** One rule for each concept: what stands after it in the list is out of its reach. */
const order = concepts.map((module, place) => ({
  name: `${module}-imports-only-what-is-below`,
  comment: `${module} may import ${concepts.slice(0, place).join(', ') || 'no other module'}.`,
  severity: 'error',
  from: { path: `^src/${module}/`, pathNot: isTest },
  to: { path: '^src/', pathNot: [`^src/${module}/`, ...(place > 0 ? [inside(concepts.slice(0, place))] : [])] },
}))

const rules = [
  {
    name: 'no-cycle',
    comment: 'Two files that need each other are one concept: join them, or move what they share below both.',
    severity: 'error',
    from: {},
    to: { circular: true },
  },
  {
    name: 'module-is-listed',
    comment: 'Every module has a place in the order: add it to the list in .dependency-cruiser.mjs.',
    severity: 'error',
    from: { path: '^src/[^/]+/', pathNot: inside([...concepts, ...adapters, ...apps]) },
    to: {},
  },
  {
    name: 'module-is-entered-by-its-index',
    comment: 'Another module is used through its index.ts, so that its inside can change.',
    severity: 'error',
    from: { path: '^src/([^/]+)/' },
    to: {
      path: '^src/[^/]+/',
      pathNot: ['^src/$1/', '^src/[^/]+/index\\.ts$', `^src/(${families})/[^/]+/index\\.ts$`],
    },
  },
  {
    name: 'main-entry-point-uses-indexes-of-concepts',
    comment: 'The main entry point shows names of concepts; adapters and apps have entry points of their own.',
    severity: 'error',
    from: { path: '^src/[^/]+\\.ts$', pathNot: isTest },
    to: { path: '^src/', pathNot: [`^src/(${concepts.join('|')})/index\\.ts$`] },
  },
  {
    name: 'adapters-stay-apart',
    comment: 'A user of one adapter must not load another.',
    severity: 'error',
    from: { path: `^src/(${adapters.join('|')})/`, pathNot: isTest },
    to: { path: inside(adapters), pathNot: '^src/$1/' },
  },
  {
    name: 'adapters-of-a-family-stay-apart',
    comment: 'What two adapters of a family share lies in their shared folder.',
    severity: 'error',
    from: { path: `^src/(${families})/([^/]+)/`, pathNot: isTest },
    to: { path: `^src/(${families})/[^/]+/`, pathNot: ['^src/$1/$2/', `^src/$1/(${shared})/`] },
  },
  {
    name: 'adapters-do-not-import-apps',
    comment: 'Apps stand on adapters, not the other way round.',
    severity: 'error',
    from: { path: inside(adapters), pathNot: isTest },
    to: { path: inside(apps) },
  },
  {
    name: 'src-imports-only-src',
    comment: 'What is shipped cannot reach tests, tools, benches or examples.',
    severity: 'error',
    from: { path: '^src/', pathNot: isTest },
    to: { path: '^(test|tools|bench|examples|docs|dist)/' },
  },
  {
    name: 'src-does-not-import-tests',
    comment: 'A test is nobody’s dependency.',
    severity: 'error',
    from: { path: '^src/', pathNot: isTest },
    to: { path: isTest },
  },
  {
    name: 'no-packages-in-the-core',
    comment: 'The core has no dependency; clients of databases, brokers and frameworks are optional peers of adapters.',
    severity: 'error',
    from: { path: '^src/', pathNot: [isTest, inside([...adapters, ...apps])] },
    to: { dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-peer', 'npm-bundled', 'npm-no-pkg', 'npm-unknown'] },
  },
  {
    name: 'adapters-import-only-peers',
    comment: 'A dev dependency is not installed for users.',
    severity: 'error',
    from: { path: inside([...adapters, ...apps]), pathNot: isTest },
    to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['npm-peer', 'npm-optional'] },
  },
  {
    name: 'no-node-modules-where-browsers-go',
    comment: 'A node: import breaks in a browser; the kernel’s runtime finds the module where there is one.',
    severity: 'error',
    from: { path: inside(browserSafe), pathNot: isTest },
    to: { dependencyTypes: ['core'], dependencyTypesNot: ['type-only', 'type-import', 'import-equals'] },
  },
  {
    name: 'resolvable',
    comment: 'The import leads nowhere.',
    severity: 'error',
    from: { path: '^src/' },
    to: { couldNotResolve: true },
  },
]

export default {
  forbidden: [...rules, ...order],
  options: {
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      conditionNames: ['import', 'types', 'default', 'node'],
      extensions: ['.ts', '.mjs', '.js'],
    },
  },
}
