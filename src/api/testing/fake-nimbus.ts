/** A Nimbus that notes what it is asked, and answers what it was told to. */
import type { IsobarError } from '../../base/index.js';
import type {
  ClusterStatus,
  ClusterSummary,
  EventList,
  EventQuery,
  LifeResult,
  Nimbus,
  RebalanceRequest,
  RebalanceResult,
  SchedulingPicture,
  SettingValue,
  SubmitRequest,
  SubmitResult,
  SupervisorStatus,
  TopologyDetail,
} from '../../nimbus/index.js';

export interface FakeAnswers {
  submit?: SubmitResult;
  life?: LifeResult;
  kill?: LifeResult;
  rebalance?: RebalanceResult;
  status?: ClusterStatus;
  list?: ClusterSummary;
  picture?: SchedulingPicture;
  describe?: TopologyDetail;
  config?: readonly SettingValue[];
  events?: EventList;
}

export class FakeNimbus implements Nimbus {
  readonly id = 'n1';
  isLeader = true;
  counts = { rounds: 0, roundMs: 0, assignments: 0, movedTasks: 0, startedWorkers: 0 };
  /** Requests with their values, in order. */
  readonly asked: unknown[][] = [];
  readonly answers: FakeAnswers = {};
  /** Thrown by every request. */
  failure: IsobarError | undefined;

  submit(request: SubmitRequest): Promise<SubmitResult> {
    return this.#answer(this.answers.submit, 'submit', request);
  }

  activate(name: string): Promise<LifeResult> {
    return this.#answer(this.answers.life, 'activate', name);
  }

  deactivate(name: string): Promise<LifeResult> {
    return this.#answer(this.answers.life, 'deactivate', name);
  }

  rebalance(name: string, request: RebalanceRequest): Promise<RebalanceResult> {
    return this.#answer(this.answers.rebalance, 'rebalance', name, request);
  }

  kill(name: string, waitMs: number | null): Promise<LifeResult> {
    return this.#answer(this.answers.kill, 'kill', name, waitMs);
  }

  async drain(name: string): Promise<void> {
    await this.#answer(undefined, 'drain', name);
  }

  async stop(name: string): Promise<void> {
    await this.#answer(undefined, 'stop', name);
  }

  status(): Promise<ClusterStatus> {
    return this.#answer(this.answers.status, 'status');
  }

  supervisors(): Promise<readonly SupervisorStatus[]> {
    return this.#answer(this.answers.status?.supervisors, 'supervisors');
  }

  list(): Promise<ClusterSummary> {
    return this.#answer(this.answers.list, 'list');
  }

  picture(): Promise<SchedulingPicture> {
    return this.#answer(this.answers.picture, 'picture');
  }

  describe(name: string): Promise<TopologyDetail> {
    return this.#answer(this.answers.describe, 'describe', name);
  }

  events(query: EventQuery): Promise<EventList> {
    return this.#answer(this.answers.events, 'events', query);
  }

  config(name: string | null): Promise<readonly SettingValue[]> {
    return this.#answer(this.answers.config, 'config', name);
  }

  async close(): Promise<void> {}

  async #answer<T>(answer: T | undefined, ...question: unknown[]): Promise<T> {
    this.asked.push(question);
    if (this.failure !== undefined) throw this.failure;
    // What a test does not look at may be missing.
    return answer as T;
  }
}
