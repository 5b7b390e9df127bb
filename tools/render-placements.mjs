// Draws the pictures of docs/balanced-scheduling.md from real plans: `isobar plan --json` on the files of docs/placements. Run after
// `npm run build`; with `--check` nothing is written, and the exit code is 1 where a picture is not what its plan says.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const COMMAND = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const DIRECTORY = fileURLToPath(new URL('../docs/placements/', import.meta.url));
const SCRATCH = mkdtempSync(join(tmpdir(), 'isobar-placements-'));

const MODES = ['none', 'slots', 'tasks', 'min-resources'];
const mode = (file) => (name) => ({
  title: name,
  plan: planOf(file, ['-s', `load-balance.mode=${name}`]),
});

const PICTURES = {
  'modes-two-four-six.svg': () => ({
    title: 'source 2, map 4, sink 6 on three machines of three slots, by load-balance.mode',
    panels: MODES.map(mode('two-four-six.json')),
  }),
  'modes-one-two-three.svg': () => ({
    title: 'source 1, map 2, sink 3 on three machines of three slots, by load-balance.mode',
    panels: MODES.map(mode('one-two-three.json')),
  }),
  'machine-lost.svg': () => {
    const [started, lost] = [join(SCRATCH, 'started.json'), join(SCRATCH, 'lost.json')];
    return {
      title: 'source 2, map 4, sink 6 under tasks, as machine m3 is lost and returns',
      panels: [
        { title: 'at the start', plan: planOf('two-four-six.json', ['--save', started]) },
        { title: 'm3 is lost', lost: 'm3', plan: planOf(started, ['--remove', 'm3', '--save', lost]) },
        { title: 'm3 returns', plan: planOf(lost, ['--add-supervisor', 'id=m3,slots=3']) },
      ],
    };
  },
  'beyond-greedy.svg': () => ({
    title: 'workers that weigh 3, 3, 2, 2, 2 on two machines',
    panels: [
      {
        title: 'as Flink: heaviest first',
        plan: planOf('unequal-weights.json', ['-s', 'load-balance.improvement=false']),
      },
      { title: 'tasks, improved', plan: planOf('unequal-weights.json', []) },
    ],
  }),
  'spread-components.svg': () => ({
    title: 'two sources, two joins of weight 2 and three sinks, each in a worker of its own',
    panels: [
      {
        title: 'whichever comes first',
        plan: planOf('one-of-each.json', [
          ...['-s', 'load-balance.classes=', '-s', 'load-balance.spread-components=false'],
          ...['-s', 'load-balance.keep-neighbours=false'],
        ]),
      },
      { title: 'spread', plan: planOf('one-of-each.json', []) },
    ],
  }),
};

/** What `isobar plan` says of a file of docs/placements, or of one that a plan has saved. */
function planOf(file, options) {
  const path = file.startsWith('/') ? file : join(DIRECTORY, file);
  const output = execFileSync(process.execPath, [COMMAND, 'plan', path, '--json', ...options], {
    encoding: 'utf8',
  });
  return JSON.parse(output);
}

const [MARGIN, GAP, SLOT_WIDTH, SLOT_HEIGHT, UNIT] = [16, 14, 172, 26, 54];
const MACHINE_WIDTH = SLOT_WIDTH + 16;
// Readable on either background; the picture brings its own all the same.
const COLOURS = ['#0969da', '#8250df', '#1a7f37', '#bc4c00'];
const STYLE = `
    text { font: 12px system-ui, sans-serif; fill: #1f2328 }
    .bold { font-weight: 600 } .small { font-size: 11px } .on { fill: #ffffff } .quiet { fill: #59636e }
    .page { fill: #ffffff } .machine { fill: #f6f8fa; stroke: #8c959f } .free { fill: none; stroke: #8c959f; stroke-dasharray: 3 3 }
    .lost { fill: none; stroke: #8c959f; stroke-dasharray: 6 4 } .slot { fill: #eaeef2; stroke: none } .moved { fill: none; stroke: #cf222e; stroke-width: 2 }
    .track { fill: #d1d9e0 } .bar { fill: #59636e }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc } .on { fill: #ffffff } .quiet { fill: #9198a1 } .page { fill: #0d1117 } .machine { fill: #151b23; stroke: #656c76 }
      .free, .lost { stroke: #656c76 } .slot { fill: #262c36 } .track { fill: #2f3742 } .bar { fill: #9198a1 } .moved { stroke: #ff7b72 }
    }`;

function picture({ title, panels }) {
  const colours = coloursOf(panels);
  const mostLoad = Math.max(...panels.map(({ plan }) => plan.after.machineLoad.max));
  const columns = panels.length === 2 && panels[0].plan.after.machines.length === 2 ? 2 : 1;
  const drawn = panels.map((panel) => panelOf(panel, colours, mostLoad));
  const width = Math.max(...drawn.map((one) => one.width));
  const rows = [];
  for (let index = 0; index < drawn.length; index += columns) rows.push(drawn.slice(index, index + columns));
  const parts = [];
  let y = MARGIN + 20;
  for (const row of rows) {
    for (const [column, one] of row.entries())
      parts.push(`<g transform="translate(${MARGIN + column * (width + 2 * GAP)} ${y})">${one.svg}</g>`);
    y += Math.max(...row.map((one) => one.height)) + GAP;
  }
  const whole = Math.max(
    2 * MARGIN + columns * width + (columns - 1) * 2 * GAP,
    2 * MARGIN + 6.6 * title.length,
  );
  const described = panels.map(({ title: name, plan }) => `${name}: ${loadsOf(plan)}`).join('; ');
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.ceil(whole)}" height="${y}" viewBox="0 0 ${Math.ceil(whole)} ${y}" role="img" aria-label="${escape(`${title}. ${described}`)}">
  <!-- Drawn by tools/render-placements.mjs from real plans; not to be edited. -->
  <style>${STYLE}
  </style>
  <rect class="page" width="100%" height="100%" rx="8"/>
  <text class="bold" x="${MARGIN}" y="${MARGIN + 6}">${escape(title)}</text>
  ${parts.join('\n  ')}
</svg>
`;
}

function panelOf({ title, plan, lost }, colours, mostLoad) {
  const machines = [...plan.after.machines.map((machine) => ({ ...machine, isLost: false }))];
  if (lost !== undefined)
    machines.push({ ...plan.before.machines.find(({ id }) => id === lost), isLost: true });
  machines.sort((a, b) => (a.id < b.id ? -1 : 1));
  const workers = plan.topologies.flatMap(({ placement }) => placement);
  const moved = new Set(
    plan.moves.filter(({ from, to }) => from !== null && to !== null).map(({ to }) => slotKey(to)),
  );
  const slots = Math.max(...machines.map((machine) => machine.slots));
  const { max } = plan.after.machineLoad;
  const isOptimal = max <= plan.after.lowestMaxLoad;
  const lowest = figure(plan.after.lowestMaxLoad);
  const bound = isOptimal ? 'no lower with these workers' : `${lowest} at least with these workers`;
  const verb = lost === undefined ? 'moved' : 'started again elsewhere';
  const moves = moved.size === 0 ? '' : `, ${moved.size} ${moved.size === 1 ? 'worker' : 'workers'} ${verb}`;
  const parts = [
    `<text y="12"><tspan class="bold">${escape(title)}</tspan><tspan class="quiet" dx="8">${loadsOf(plan)} (${bound})${moves}</tspan></text>`,
  ];
  for (const [index, machine] of machines.entries()) {
    const x = index * (MACHINE_WIDTH + GAP);
    parts.push(
      `<g transform="translate(${x} 22)">${machineOf(machine, { workers, moved, slots, colours, mostLoad })}</g>`,
    );
  }
  return {
    svg: parts.join(''),
    width: machines.length * (MACHINE_WIDTH + GAP) - GAP,
    height: 22 + 24 + slots * (SLOT_HEIGHT + 4) + 24,
  };
}

function machineOf({ id, slots, load, isLost }, { workers, moved, slots: rows, colours, mostLoad }) {
  const height = 24 + rows * (SLOT_HEIGHT + 4) + 22;
  if (isLost)
    return `<rect class="lost" width="${MACHINE_WIDTH}" height="${height}" rx="6"/><text class="quiet" x="8" y="17">${escape(id)}, lost</text>`;
  const own = workers.filter(({ supervisor }) => supervisor === id).sort((a, b) => a.port - b.port);
  const parts = [
    `<rect class="machine" width="${MACHINE_WIDTH}" height="${height}" rx="6"/><text class="bold" x="8" y="17">${escape(id)}</text>`,
  ];
  for (let row = 0; row < slots; row++) {
    const worker = own[row];
    const at = `x="8" y="${24 + row * (SLOT_HEIGHT + 4)}" width="${SLOT_WIDTH}" height="${SLOT_HEIGHT}" rx="4"`;
    parts.push(`<rect class="${worker === undefined ? 'free' : 'slot'}" ${at}/>`);
    if (worker === undefined) continue;
    let x = 10;
    for (const { component } of worker.executors) {
      const { colour, load: weight } = colours.get(component);
      const y = 26 + row * (SLOT_HEIGHT + 4);
      const width = Math.min(UNIT * weight, SLOT_WIDTH - 4) - 2;
      const label = weight === 1 ? component : `${component} ${figure(weight)}`;
      parts.push(
        `<rect x="${x}" y="${y}" width="${width}" height="${SLOT_HEIGHT - 4}" rx="3" fill="${colour}"/><text class="on small" x="${x + width / 2}" y="${y + 15}" text-anchor="middle">${escape(label)}</text>`,
      );
      x += width + 2;
    }
    if (moved.has(slotKey(worker))) parts.push(`<rect class="moved" ${at}/>`);
  }
  const y = 24 + rows * (SLOT_HEIGHT + 4) + 4;
  const [track, bar] = [
    SLOT_WIDTH - 26,
    mostLoad === 0 ? 0 : Math.round(((SLOT_WIDTH - 26) * load) / mostLoad),
  ];
  parts.push(
    `<rect class="track" x="8" y="${y}" width="${track}" height="8" rx="4"/>`,
    load === 0 ? '' : `<rect class="bar" x="8" y="${y}" width="${bar}" height="8" rx="4"/>`,
    `<text class="bold" x="${MACHINE_WIDTH - 10}" y="${y + 8}" text-anchor="end">${figure(load)}</text>`,
  );
  return parts.join('');
}

/** Colour and weight of each component, in the order of the files. */
function coloursOf(panels) {
  const colours = new Map();
  const inputs = panels.flatMap(({ plan }) => plan.topologies);
  for (const { placement } of inputs) {
    for (const { executors } of placement) {
      for (const { component } of executors)
        if (!colours.has(component))
          colours.set(component, { colour: '', load: weightOf(component, panels) });
    }
  }
  const names = [...colours.keys()].sort();
  for (const [index, name] of names.entries()) colours.get(name).colour = COLOURS[index % COLOURS.length];
  return colours;
}

/** From a move of executors of this component alone; 1 where there is none. */
function weightOf(component, panels) {
  for (const { plan } of panels) {
    const alone = plan.moves.find(({ executors }) => executors.every((one) => one.component === component));
    if (alone !== undefined) return alone.load / alone.executors.length;
  }
  return 1;
}

function loadsOf({ after }) {
  return after.machines.map(({ load }) => figure(load)).join('/');
}

function slotKey({ supervisor, port }) {
  return `${supervisor}:${port}`;
}

function figure(value) {
  return Number.isInteger(value) ? String(value) : value.toFixed(2);
}

function escape(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}

try {
  const isCheck = process.argv.includes('--check');
  for (const [name, make] of Object.entries(PICTURES)) {
    const path = join(DIRECTORY, name);
    const svg = picture(make());
    if (!isCheck) writeFileSync(path, svg);
    else if (!existsSync(path) || readFileSync(path, 'utf8') !== svg) {
      console.log(`docs/placements/${name} is not what its plan says: npm run docs:pictures`);
      process.exitCode = 1;
    }
  }
} finally {
  rmSync(SCRATCH, { recursive: true, force: true });
}
