export { defaultSocket, Where, type Access } from "./address.js";
export type { Archive } from "./archive.js";
export { Durward, type CreateOptions, type GetOrCreateOptions, type Identity, type VolumeOptions } from "./client.js";
export {
  BadRequest, Conflict, Denied, DurwardError, FileError, NotFound, NotRunning, Unavailable, Unsupported,
} from "./errors.js";
export type {
  Approval, DaemonEvent, Decision, Denial, Fleet, FleetHost, FleetLog, FleetShare, ExecEvent, ExecResult, Explanation, FileEntry, FileEvent, FileResult, LogConditions, OnIdle,
  OnSoftTtl, Path, Preview,
  Proposal, Published,
  RunningExec, SandboxInfo, SandboxState, Service, Snapshot, Suppression, SuppressOptions, Template, Verification, Volume,
} from "./models.js";
export { Sandbox, type Changes, type ExecOptions, type ForkOptions, type Operation, type StartOptions } from "./sandbox.js";
export { reachedAt, trustFiles, variables, type Elsewhere } from "./trust.js";
