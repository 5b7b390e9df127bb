export type { ChannelHandlers } from './channel.js';
export { Channel, checkSocketPath, connectChannel, MAX_SOCKET_PATH_BYTES } from './channel.js';
export type { ChannelServer } from './channel-server.js';
export { makePrivateDirectory, serveChannels } from './channel-server.js';
export { closestName } from './closest-name.js';
export { attendedClock } from './attended-clock.js';
export type { CancelTimer, Clock, StoredMoment } from './clock.js';
export { msBetween, systemClock, VirtualClock } from './clock.js';
export { crc32 } from './crc32.js';
export type { DirectoryLock } from './directory-lock.js';
export { directoryOwner, lockDirectory } from './directory-lock.js';
export { readJsonFile, removeUnfinished, writeDurableFile, writeWorkFile } from './durable-file.js';
export { errorKind } from './error-kind.js';
export type { ErrorCode, ErrorDetails, ErrorRecord } from './errors.js';
export { ERROR_TABLE, hasCode, isErrorCode, IsobarError, toErrorRecord, toIsobarError } from './errors.js';
export type { SketchPairs } from './latency-sketch.js';
export {
  bucketMicros,
  mergeSketches,
  SKETCH_BUCKETS,
  sketchBucket,
  sketchQuantile,
  toSketchPairs,
} from './latency-sketch.js';
export { LineFollower } from './line-follower.js';
export { LogFile } from './log-file.js';
export type { LogFields, Logger } from './logger.js';
export { createLogger, silentLogger } from './logger.js';
export { packageEntry, packageRoot } from './package-root.js';
export { packageVersion } from './package-version.js';
export type { RawSettings, SettingFault, SettingName, Settings } from './settings.js';
export {
  aliasNotes,
  canonicalSettingName,
  compileSettings,
  DEFAULT_SETTINGS,
  parseByteCount,
  parseDurationMs,
} from './settings.js';
export type { SettingDefinition } from './settings-table.js';
export { SETTINGS_TABLE } from './settings-table.js';
export { Shutdown } from './shutdown.js';
export {
  ACKER,
  EVENT_LOGGER,
  isSystemComponent,
  METRICS_PREFIX,
  SYSTEM,
  SYSTEM_PREFIX,
} from './system-components.js';
export { bootId, isSameProcessAlive, processIdentity } from './process-identity.js';
export type { ProcessIdentity } from './process-identity.js';
