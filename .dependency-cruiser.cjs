/** Module boundaries: a folder imports only folders above it in docs/architecture.md's list. */
const order = [
  'base',
  'topology',
  'scheduling',
  'coordination',
  'messaging',
  'state',
  'worker',
  'supervisor',
  'nimbus',
  'api',
  'connectors',
  'engines',
  'cli',
  'testing',
];
const layers = order.map((folder, index) => ({
  name: `layer-${folder}`,
  severity: 'error',
  comment: `${folder}/ may import only folders above it`,
  from: { path: `^src/${folder}/`, pathNot: '[.]test[.]ts$' },
  to: { path: `^src/(${order.slice(index + 1).join('|') || 'nothing'})/` },
}));
module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'pure-means-pure',
      severity: 'error',
      from: { path: '^src/(topology|scheduling)/', pathNot: '[.]test[.]ts$' },
      to: { dependencyTypes: ['core', 'npm'] },
    },
    {
      name: 'daemons-stay-apart',
      severity: 'error',
      from: { path: '^src/(nimbus|supervisor|worker)/', pathNot: '[.]test[.]ts$' },
      to: { path: '^src/(nimbus|supervisor|worker)/', pathNot: '^src/$1/' },
    },
    {
      name: 'one-door',
      severity: 'error',
      comment: 'outsiders import a folder through its index.ts',
      from: { path: '^src/([^/]+)/', pathNot: '[.]test[.]ts$' },
      to: { path: '^src/([^/]+)/', pathNot: ['^src/$1/', '^src/[^/]+/index[.]ts$'] },
    },
    ...layers,
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
  },
};
