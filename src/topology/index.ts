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
