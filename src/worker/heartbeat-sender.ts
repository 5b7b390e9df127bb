/**
 * When the worker's heartbeats leave: at the pace that heartbeat-pace.ts gives, soon after something has changed, and once
 * more, on disk too, when the worker ends.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock, Logger } from '../base/index.js';
import { LAST_REPORT_FILE, type WorkerHeartbeat } from '../coordination/index.js';
import { HeartbeatPace } from './heartbeat-pace.js';
import type { SupervisorLink } from './supervisor-link.js';

const CHANGED_DELAY_MS = 2;

export interface HeartbeatSenderOptions {
  readonly link: SupervisorLink;
  /** How long a heartbeat may stay away when there is no news, ms. */
  readonly quietIntervalMs: number;
  /** The worker's. */
  readonly directory: string;
  readonly clock: Clock;
  readonly logger: Logger;
  heartbeat(): WorkerHeartbeat;
}

export class HeartbeatSender {
  readonly #options: HeartbeatSenderOptions;
  readonly #pace: HeartbeatPace;
  #changedScheduled = false;

  constructor(options: HeartbeatSenderOptions) {
    this.#options = options;
    this.#pace = new HeartbeatPace(options.quietIntervalMs);
  }

  /** To the supervisor, and for one that is away or reads too late beside the launch file. */
  sayLast(): void {
    const { link, directory, logger } = this.#options;
    const heartbeat = this.#options.heartbeat();
    try {
      writeFileSync(join(directory, LAST_REPORT_FILE), JSON.stringify(heartbeat));
    } catch (error) {
      logger.warn('last-report.not-written', { message: String(error) });
    }
    if (link.isConnected) this.#send(heartbeat);
  }

  /** `isWaitedFor`: somebody counts the heartbeats, so that one leaves although it says nothing new. */
  beatIfDue(isWaitedFor: boolean): void {
    const { link, clock } = this.#options;
    const startMs = clock.nowMs();
    if (!link.isConnected || this.#pace.restMs(startMs) > 0) return;
    const heartbeat = this.#options.heartbeat();
    if (isWaitedFor || this.#pace.isDue(heartbeat, startMs)) this.#send(heartbeat);
    this.#noteCost(startMs);
  }

  /** Something has changed that the supervisor should hear of soon. */
  changed(): void {
    if (this.#changedScheduled) return;
    this.#changedScheduled = true;
    const { link, clock } = this.#options;
    clock.after(Math.max(CHANGED_DELAY_MS, this.#pace.restMs(clock.nowMs())), () => {
      this.#changedScheduled = false;
      const startMs = clock.nowMs();
      if (link.isConnected) this.#send(this.#options.heartbeat());
      this.#noteCost(startMs);
    });
  }

  /** The supervisor went or came: it has not heard anything yet. */
  onPresence(): void {
    this.#pace.reset();
  }

  #noteCost(startMs: number): void {
    const { clock } = this.#options;
    const nowMs = clock.nowMs();
    this.#pace.noteCost(nowMs - startMs, nowMs);
  }

  #send(heartbeat: WorkerHeartbeat): void {
    this.#pace.noteSent(heartbeat, this.#options.clock.nowMs());
    this.#options.link.heartbeat(heartbeat);
  }
}
