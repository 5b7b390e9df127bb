// Writes docs/errors.md and docs/settings.md, and the table in docs/metrics.md, from the tables in the code. Run after `npm run build`.
import { readFileSync, writeFileSync } from 'node:fs';
import { METRICS_TABLE } from '../build/api/index.js';
import { ERROR_TABLE, SETTINGS_TABLE } from '../build/base/index.js';

const cell = (text) => String(text).replaceAll('|', '\\|');

writeFileSync(
  new URL('../docs/errors.md', import.meta.url),
  `# Errors

Every error that Isobar reports has a stable code. This table is written from the code by \`npm run docs:tables\`, and a test
compares the two. *Retryable* errors may pass by themselves.

| code | when | what to do | retryable |
|---|---|---|---|
${Object.entries(ERROR_TABLE)
  .map(
    ([code, { when, action, retryable }]) =>
      `| \`${code}\` | ${cell(when)} | ${cell(action)} | ${retryable ? 'yes' : ''} |`,
  )
  .join('\n')}
`,
);

const show = (definition) => {
  const value = definition.default;
  if (value === null) return 'not set';
  if (definition.kind === 'duration')
    return value % 1000 === 0 && value > 0 ? `${value / 1000}s` : `${value}ms`;
  if (definition.kind === 'bytes') return value % 1_048_576 === 0 ? `${value / 1_048_576}MB` : `${value}`;
  return String(value);
};
const aliases = (list) =>
  (list ?? []).map(({ name, unit }) => `\`${name}\`${unit === 'plain' ? '' : ` (${unit})`}`).join(', ');

writeFileSync(
  new URL('../docs/settings.md', import.meta.url),
  `# Settings

Give settings in the file (\`topology(name, { …settings }, build)\`) or with \`--set key=value\`, which wins. Durations are written
\`250ms\`, \`10s\`, \`2m\`, \`1h\`; sizes \`64KB\`, \`1MB\`. The names that Storm and Flink use are understood too, plain numbers then
in the unit shown. All faults are reported at once, with the closest name for an unknown one. This table is written from the
code by \`npm run docs:tables\`, and a test compares the two.

| setting | kind | default | scope | meaning | Storm | Flink |
|---|---|---|---|---|---|---|
${Object.entries(SETTINGS_TABLE)
  .map(
    ([name, definition]) =>
      `| \`${name}\` | ${definition.kind} | ${show(definition)} | ${definition.scope} | ${cell(definition.what)} | ${aliases(definition.storm)} | ${aliases(definition.flink)} |`,
  )
  .join('\n')}
`,
);

const metrics = new URL('../docs/metrics.md', import.meta.url);
const rows = Object.entries(METRICS_TABLE).map(
  ([name, { type, labels, what }]) =>
    `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${cell(what)} |`,
);
const text = readFileSync(metrics, 'utf8');
writeFileSync(
  metrics,
  `${text.slice(0, text.indexOf('| metric |'))}| metric | type | labels | meaning |\n|---|---|---|---|\n${rows.join('\n')}\n`,
);
