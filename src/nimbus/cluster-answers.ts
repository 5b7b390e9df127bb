/** What Nimbus answers who asks how things are, from what it knows; nothing is decided or written. */
import { type Clock, IsobarError, type Settings } from '../base/index.js';
import type { DesiredState, FoldedHeartbeat } from '../coordination/index.js';
import { compareText } from '../scheduling/index.js';
import type { ClusterView, Report } from './cluster-view.js';
import type { CoordinatorProblem } from './coordinator-check.js';
import type { ClusterEvent, EventList, EventQuery } from './events/cluster-event.js';
import type { EventDesk } from './events/event-desk.js';
import { notLoaded } from './rebalance-decision.js';
import { type SettingValue, settingValues } from './setting-values.js';
import {
  type ClusterStatus,
  type SupervisorStatus,
  supervisorStatuses,
  topologyStatus,
  type TopologyStatus,
} from './status.js';
import { type ClusterSummary, type TopologySummary, topologySummary } from './summary.js';
import type { TopologyRequests } from './topology-requests.js';

export interface TopologyDetail {
  readonly summary: TopologySummary;
  /** What a rebalance has made of it; null: it is as submitted. */
  readonly desired: DesiredState | null;
  readonly status: TopologyStatus;
  /** The last few things that happened to it, oldest first. */
  readonly events: readonly ClusterEvent[];
}

export interface ClusterAnswersOptions {
  readonly nimbusId: string;
  readonly view: ClusterView;
  readonly requests: TopologyRequests;
  readonly events: EventDesk;
  readonly settings: Settings;
  readonly clock: Clock;
  /** Has the machine of this supervisor gone, as far as can be known? What it said last does not hold any more then. */
  isGone(supervisorId: string): boolean;
}

export class ClusterAnswers {
  readonly #options: ClusterAnswersOptions;

  constructor(options: ClusterAnswersOptions) {
    this.#options = options;
  }

  status(coordinatorProblem: CoordinatorProblem | null): ClusterStatus {
    const { nimbusId, view, clock } = this.#options;
    const wallMs = clock.wallMs();
    const current = this.#currentHeartbeats();
    return {
      atMs: wallMs,
      nimbusId,
      supervisors: this.supervisors(),
      topologies: [...view.topologies.values()]
        .sort((a, b) => a.record.submittedMs - b.record.submittedMs || compareText(a.id, b.id))
        .map((known) => topologyStatus(known.facts(), current, wallMs)),
      coordinatorProblem,
    };
  }

  supervisors(): readonly SupervisorStatus[] {
    const { view } = this.#options;
    return supervisorStatuses(view.supervisors, view.heartbeats);
  }

  list(coordinatorProblem: CoordinatorProblem | null): ClusterSummary {
    const { nimbusId, view, clock } = this.#options;
    const now = clock.moment();
    const slots = this.supervisors().flatMap((one) => (one.isPresent ? one.slots : []));
    return {
      atMs: now.wallMs,
      nimbusId,
      supervisors: view.supervisors.length,
      slots: { total: slots.length, used: slots.filter(({ topologyId }) => topologyId !== null).length },
      topologies: [...view.topologies.values()]
        .filter(({ record }) => record.phase.kind !== 'removed')
        .map((known) => topologySummary(known, this.#currentReportsOf(known.id), now))
        .sort((a, b) => compareText(a.name, b.name) || a.submittedMs - b.submittedMs),
      coordinatorProblem,
    };
  }

  /** @throws TOPOLOGY_NOT_ALIVE */
  describe(name: string): TopologyDetail {
    const { requests, events, clock } = this.#options;
    const known = requests.named(name);
    const now = clock.moment();
    return {
      summary: topologySummary(known, this.#currentReportsOf(known.id), now),
      desired: known.record.desired ?? null,
      status: topologyStatus(known.facts(), this.#currentHeartbeats(), now.wallMs),
      events: events.lastOf(known.id),
    };
  }

  /** @throws TOPOLOGY_NOT_ALIVE for a name that nothing is known of */
  events(query: EventQuery): EventList {
    const { requests, events } = this.#options;
    const list = events.list(query);
    // Whatever is known of those that have been removed is told; of a name that nobody had, nothing is.
    if (query.name !== null && !events.knows(query.name)) requests.named(query.name);
    return list;
  }

  /** @throws TOPOLOGY_NOT_ALIVE, and why it could not be loaded */
  config(name: string | null): readonly SettingValue[] {
    const { requests, settings: cluster } = this.#options;
    if (name === null) return settingValues(cluster);
    const { loaded, record, loadProblem, id } = requests.named(name);
    if (loaded === undefined) throw IsobarError.from(loadProblem ?? notLoaded(id));
    const { settings, description } = loaded;
    return settingValues(cluster, {
      settings,
      file: description.settings,
      submitted: record.settings,
      workers: record.desired?.workers,
    });
  }

  /** Without the last words of machines that are gone. */
  #currentHeartbeats(): readonly FoldedHeartbeat[] {
    return this.#options.view.heartbeats.filter(({ supervisorId }) => !this.#options.isGone(supervisorId));
  }

  #currentReportsOf(topologyId: string): readonly Report[] {
    return this.#options.view
      .reportsOf(topologyId)
      .filter(({ supervisorId }) => !this.#options.isGone(supervisorId));
  }
}
