/** The package's public door: what a topology's file imports from `isobar`. Its types bring those of Node along. */
/// <reference types="node" preserve="true" />
export { hasCode, IsobarError } from './base/index.js';
export type { Clock, ErrorCode, ErrorDetails, LogFields, Logger, Settings } from './base/index.js';
export { bolt, spout, t, topology } from './topology/index.js';
export type {
  Anchor,
  BoltDefinition,
  BoltHandle,
  BoltHandlers,
  BoltOut,
  ComponentOptions,
  CustomGrouping,
  Duration,
  EmitRow,
  Fields,
  FieldsByName,
  FieldType,
  JoinHandle,
  NoNames,
  Out,
  Row,
  RowOf,
  SpoutAnswer,
  SpoutDefinition,
  SpoutHandle,
  SpoutItem,
  SpoutSource,
  StreamHandle,
  TaskContext,
  TaskMetrics,
  TopologyBuilder,
  TopologyDefinition,
  TopologySettings,
} from './topology/index.js';
