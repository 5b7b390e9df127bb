import { afterAll } from 'vitest';
import { coordinationSuite } from '../coordination.conformance.js';
import { createZooKeeperHarness, stopSharedServer } from './zookeeper-harness.conformance.js';
import { zooKeeperMissing } from './zookeeper-servers.conformance.js';

coordinationSuite({
  name: 'ZooKeeper',
  create: createZooKeeperHarness,
  skipAll: await zooKeeperMissing(),
});
afterAll(stopSharedServer);
