/**
 * What of a topology no machine that is there could hold, however empty: to be said when it is submitted or planned, not when it has
 * waited in vain. Whether there is room now is a matter of rounds.
 */
import type { ClusterSupervisor, ClusterTopology } from './cluster-snapshot.js';
import { slotsWanted } from './strategies/balanced/slot-groups.js';

type Offer = Pick<ClusterSupervisor, 'ports' | 'resources'>;

/**
 * Sentences whose subject is the topology, in order of its components. Nothing is said of strategies that take what there is, and
 * nothing without machines: that is another matter. Cost: O(machines + components × kinds of machines).
 *
 * @param strategy name of the strategy that is to place it
 */
export function neverFits(
  topology: ClusterTopology,
  supervisors: readonly Offer[],
  strategy: string,
): readonly string[] {
  if (supervisors.length === 0) return [];
  if (strategy === 'balanced') return slotFaults(topology, supervisors);
  return strategy === 'resource-aware' ? resourceFaults(topology, supervisors) : [];
}

function slotFaults(topology: ClusterTopology, supervisors: readonly Offer[]): readonly string[] {
  const wanted = slotsWanted(topology);
  const slots = supervisors.reduce((sum, { ports }) => sum + ports.length, 0);
  if (wanted <= slots) return [];
  const there = slots === 1 ? 'there is 1 slot' : `there are ${slots} slots`;
  const mode = topology.balance?.mode ?? 'tasks';
  const what =
    mode === 'tasks'
      ? 'slot.wait-timeout says how long it waits for more'
      : `under load-balance.mode ${mode} it takes what there is, and stays on that until isobar rebalance`;
  return [`wants ${wanted} workers, and ${there} in all; ${what}.`];
}

function resourceFaults(
  { components = [], executors, rules }: ClusterTopology,
  supervisors: readonly Offer[],
): readonly string[] {
  const offers = differentOffers(supervisors);
  const count = new Map<string, number>();
  for (const { component } of executors) count.set(component, (count.get(component) ?? 0) + 1);
  const sentences: string[] = [];
  let [cpuPercent, memoryMb] = [0, 0];
  for (const { id, resources } of components) {
    const number = count.get(id) ?? 0;
    if (number === 0) continue;
    const ownMb = resources.onHeapMb + resources.offHeapMb;
    cpuPercent += number * resources.cpuPercent;
    memoryMb += number * ownMb;
    const mostHeapMb = rules?.workerMaxHeapMb ?? Infinity;
    if (resources.onHeapMb > mostHeapMb) {
      sentences.push(
        `can never be placed: an executor of "${id}" asks for ${resources.onHeapMb} MB of heap, and topology.worker-max-heap allows ${mostHeapMb} MB for a whole worker. Raise it.`,
      );
    }
    const isHeld = ({ cpuPercent: cpu, memoryMb: memory, generic }: Required<Resources>): boolean =>
      resources.cpuPercent <= cpu &&
      ownMb <= memory &&
      Object.entries(resources.generic ?? {}).every(([name, amount]) => amount <= (generic[name] ?? 0));
    if (offers.some(isHeld)) continue;
    const named = Object.entries(resources.generic ?? {}).map(([name, amount]) => `, ${amount} ${name}`);
    const asked = `${resources.cpuPercent} % of a core, ${ownMb} MB${named.join('')}`;
    sentences.push(
      `has no machine that could hold an executor of "${id}", however empty: it asks for ${asked}; ${mostOf(offers)}. Lower the request, or add a larger machine.`,
    );
  }
  if (sentences.length > 0) return sentences;
  const all = (read: (resources: Resources) => number): number =>
    supervisors.reduce((sum, { resources }) => sum + (resources === undefined ? 0 : read(resources)), 0);
  const lack = (need: number, have: number, what: string): void => {
    if (need > have)
      sentences.push(
        `asks for ${need} ${what} in all, and all machines together offer ${have}. Add machines.`,
      );
  };
  lack(
    cpuPercent,
    all((one) => one.cpuPercent),
    '% of a core',
  );
  lack(
    memoryMb,
    all((one) => one.memoryMb),
    'MB',
  );
  return sentences;
}

type Resources = NonNullable<ClusterSupervisor['resources']>;

/** Machines that offer the same are one kind; most clusters have few. */
function differentOffers(supervisors: readonly Offer[]): readonly Required<Resources>[] {
  const kinds = new Map<string, Required<Resources>>();
  for (const { resources = { cpuPercent: 0, memoryMb: 0 } } of supervisors) {
    const { cpuPercent, memoryMb, generic = {} } = resources;
    kinds.set(JSON.stringify([cpuPercent, memoryMb, generic]), { cpuPercent, memoryMb, generic });
  }
  return [...kinds.values()];
}

function mostOf(offers: readonly Required<Resources>[]): string {
  const most = (read: (one: Resources) => number): number => Math.max(...offers.map(read));
  const [cpuPercent, memoryMb] = [most((one) => one.cpuPercent), most((one) => one.memoryMb)];
  const isOne = offers.some((one) => one.cpuPercent === cpuPercent && one.memoryMb === memoryMb);
  return isOne
    ? `the largest has ${cpuPercent} % and ${memoryMb} MB`
    : `the most that one has are ${cpuPercent} %, and ${memoryMb} MB on another`;
}
