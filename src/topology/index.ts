export { bolt } from './bolt.js';
export type { BoltDefinition } from './bolt.js';
export type { BoltHandlers, BoltOut, BoltParts, Duration, ManualEmitOptions } from './bolt-parts.js';
export { canonicalDescription } from './canonical.js';
export { describedSpout, isDefinition, isPromiseLike } from './definition.js';
export type { Definition } from './definition.js';
export { DEFAULT_STREAM } from './description.js';
export type {
  ComponentDescription,
  FieldDescription,
  FieldKind,
  GroupingDescription,
  StreamDescription,
  SubscriptionDescription,
  TopologyDescription,
} from './description.js';
export type { TopologyFault } from './faults.js';
export { t } from './fields.js';
export type { EmitRow, Fields, FieldsByName, FieldType, NoNames, RowOf, ValueOf } from './fields.js';
export type { StreamHandle, StreamSource } from './fit.js';
export { cycleComponents, graphStages, listSubscriptions } from './graph.js';
export type { ListedSubscription } from './graph.js';
export type {
  BoltHandle,
  ComponentOptions,
  Groupings,
  JoinHandle,
  SpoutHandle,
  TopologyBuilder,
} from './handles.js';
export type { Out } from './out.js';
export { validateDescription } from './parse-description.js';
export type {
  Anchor,
  BoltTask,
  BuiltTopology,
  CustomGrouping,
  EmitOptions,
  Row,
  RuntimeBolt,
  RuntimeOut,
  RuntimeSource,
  RuntimeSpout,
  SourceRow,
  TaskContext,
  TaskMetrics,
} from './runtime.js';
export { spout } from './spout.js';
export type {
  SpoutAnswer,
  SpoutDefinition,
  SpoutEmitOptions,
  SpoutItem,
  SpoutParts,
  SpoutSource,
} from './spout.js';
export { buildTopology, topology } from './topology.js';
export type { TopologyDefinition, TopologySettings } from './topology.js';
