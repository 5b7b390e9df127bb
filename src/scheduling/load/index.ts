export { executorLoads, typicalLoad } from './executor-loads.js';
export type { LoadSample } from './load-meter.js';
export { LoadMeter } from './load-meter.js';
