import { coordinationSuite } from '../coordination.conformance.js';
import { createEmbeddedHarness } from './embedded-harness.conformance.js';

coordinationSuite({ name: 'the embedded coordinator', create: () => createEmbeddedHarness() });
