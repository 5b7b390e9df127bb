import { expect, it } from 'vitest';
import { cluster, component, topology } from '../testing/statuses.js';
import { inFlowOrder } from './flow-order.js';

it('puts spouts first and each bolt behind those that it gets rows from, whatever the order of declaration', () => {
  const status = topology({
    components: [
      component('sink', 'bolt'),
      component('a', 'spout'),
      component('split', 'bolt'),
      component('b', 'spout'),
    ],
  });
  const [ordered] = inFlowOrder(cluster(1, status), status.id, ['split', 'sink']).topologies;
  expect(ordered?.components.map((one) => one.component)).toEqual(['a', 'b', 'split', 'sink']);
});
