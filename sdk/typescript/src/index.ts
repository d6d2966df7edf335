export { defaultSocket, Where, type Access } from "./address.js";
export { Durward, type CreateOptions, type GetOrCreateOptions, type Identity } from "./client.js";
export {
  BadRequest, Conflict, Denied, DurwardError, FileError, NotFound, NotRunning, Unavailable, Unsupported,
} from "./errors.js";
export type {
  DaemonEvent, Denial, ExecEvent, ExecResult, FileEntry, FileResult, Path, SandboxInfo, SandboxState,
} from "./models.js";
export { Sandbox, type Changes, type ExecOptions, type Operation } from "./sandbox.js";
export { reachedAt, trustFiles, variables, type Elsewhere } from "./trust.js";
