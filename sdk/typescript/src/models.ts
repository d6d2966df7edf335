/** What the API answers, as values. */
import { DurwardError, FileError } from "./errors.js";

/** Paths in a sandbox: text, or bytes for what is no UTF-8. */
export type Path = string | Uint8Array;
export type SandboxState = "creating" | "running" | "paused" | "resuming" | "stopped" | "stopping";

/** What happens when nothing was done in it for its idle time. */
export type OnIdle = "delete" | "pause" | "stop";
export type OnSoftTtl = "stop" | "pause";

/** What a sandbox tried and was refused. */
export interface Denial {
  readonly code: string;
  readonly target: string;
  readonly count: number;
}

/** A port inside, and the ADDRESS:PORT at which it is reached from outside. */
export interface Published {
  readonly port: number;
  readonly address: string;
}

/** A sandbox as it was when it was asked about. Times are seconds since 1970. */
export interface SandboxInfo {
  readonly id: string;
  readonly name: string | null;
  readonly policy: string;
  readonly state: SandboxState;
  /** Why it is stopped, else empty. */
  readonly reason: string;
  readonly generation: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly ttl: number;
  readonly idleTtl: number;
  readonly idleExpiresAt: number | null;
  /** Seconds that it runs at a stretch; 0: for ever. */
  readonly softTtl: number;
  readonly softExpiresAt: number | null;
  readonly onSoftTtl: OnSoftTtl;
  readonly backend: "bwrap" | "docker" | "gvisor" | "kubernetes" | "microvm" | "pod";
  readonly image: string;
  /** Its files outlive its processes: stop and resume keep them. */
  readonly kept: boolean;
  readonly onIdle: OnIdle;
  /** A command or a file operation resumes it. */
  readonly autoResume: boolean;
  /** That it was forked from. */
  readonly parent: string | null;
  /** That its files were last taken from. */
  readonly snapshot: string | null;
  /** That it was made by. */
  readonly template: string | null;
  readonly denied: readonly Denial[];
  readonly published: readonly Published[];
  /** NAME:/path[:ro], as they were asked for; those of its policy come besides. */
  readonly volumes: readonly string[];
}

/** What happened below a watched directory. `ready`: from here on nothing is missed. `overflow`: list anew; events were
 * lost, or there are more directories than are watched. A move is a deletion and a creation; a directory that is deleted
 * goes with all below it. An event may come twice. */
export type FileEvent =
  | { readonly type: "ready" }
  | { readonly type: "overflow"; readonly reason: "events" | "directories" }
  | {
      readonly type: "created" | "modified" | "attributes" | "deleted";
      /** Below the watched directory; bytes where it is no UTF-8. */
      readonly path: Path;
      readonly directory: boolean;
    };

/** A command that ended. Exit codes: its own; 124 timed out; 125 Durward failed; 126 not executable; 127 not
 * found; 128+n signal n. */
export interface ExecResult {
  readonly id: string;
  readonly exitCode: number;
  /** Standard output and error as they came; with `split`: standard output alone. */
  readonly output: Uint8Array;
  /** With `split` only. */
  readonly stderr: Uint8Array;
  /** The output as text; what is no UTF-8 is replaced. */
  readonly text: string;
  readonly truncated: boolean;
  readonly timedOut: boolean;
  /** Why it did not run, else empty. */
  readonly message: string;
  readonly durationMs: number;
}

/** What a streamed command says: pieces of output, then its end. */
export type ExecEvent =
  | { readonly type: "stdout" | "stderr"; readonly data: Uint8Array }
  | ({ readonly type: "exit" } & ExecResult);

/** What is at a path. */
export interface FileEntry {
  /** What is no UTF-8 in it is replaced: then use `raw`. */
  readonly name: string;
  readonly raw: Uint8Array;
  readonly type: "file" | "directory" | "symlink" | "other";
  readonly size: number;
  readonly mode: number;
  readonly modifiedAt: number;
  /** For `ifVersion`; null while it has just changed: ask again. */
  readonly version: string | null;
}

/** What became of one file of several. */
export interface FileResult {
  readonly path: Path;
  /** Of a read that succeeded. */
  readonly data: Uint8Array | null;
  readonly error: FileError | null;
}

/** A copy of a sandbox's files, by name. */
export interface Snapshot {
  readonly name: string;
  readonly state: "making" | "ready" | "removing";
  readonly sandbox: string;
  readonly policy: string;
  readonly image: string;
  readonly createdAt: number;
}

/** A kind of sandboxes that the daemon's configuration names, and its pool. */
export interface Template {
  readonly name: string;
  readonly policy: string;
  readonly image: string;
  /** That its sandboxes begin with. */
  readonly snapshot: string | null;
  /** A command runs inside before anybody has the sandbox. */
  readonly warmUp: boolean;
  readonly labels: Readonly<Record<string, string>>;
  /** Inside; reached at free ports of the daemon's host. */
  readonly ports: readonly number[];
  readonly volumes: readonly string[];
  readonly ttl: number;
  readonly idleTtl: number;
  readonly onIdle: OnIdle;
  readonly softTtl: number;
  readonly onSoftTtl: OnSoftTtl;
  /** How many are kept ready, can be had at once, are on their way. */
  readonly pool: number;
  readonly ready: number;
  readonly making: number;
  /** Had out of the pool; null of this and the following: this token is not told. */
  readonly claimed: number | null;
  /** Made when they were asked for. */
  readonly missed: number | null;
  /** In a row. */
  readonly failures: number | null;
  /** Seconds. */
  readonly retryIn: number | null;
  /** Of the last failure. */
  readonly reason: string | null;
}

/** Files that outlive the sandboxes which mount them, or a snapshot of such. */
export interface Volume {
  readonly name: string;
  /** Whose sandboxes may have it. */
  readonly policy: string;
  readonly state: "making" | "ready" | "restoring" | "removing";
  /** Bytes that it may hold. */
  readonly size: number;
  /** Of these, of `volume()` only: as it was counted last. */
  readonly used: number | null;
  readonly access: "one" | "many";
  readonly snapshotOf: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAt: number;
  /** In sandboxes that run. */
  readonly mounted: readonly { readonly sandbox: string; readonly path: string; readonly readOnly: boolean }[];
}

/** What a reading of the whole audit log found. */
export interface Verification {
  readonly ok: boolean;
  /** Good ones, up to the problem or all. */
  readonly records: number;
  readonly files: number;
  readonly checkpoints: number;
  /** Records since the last checkpoint, not signed yet. */
  readonly unsigned: number;
  /** The daemon's own, and those of `durward run` in the same directory. */
  readonly logs: number;
  /** The public key, hexadecimal. */
  readonly key: string;
  /** Where it breaks. line 0: the whole file. */
  readonly problem?: { readonly file: string; readonly line: number; readonly why: string };
}

/** Which records of the log; the times as `durward audit query` takes them. */
export interface LogConditions {
  readonly since?: string;
  readonly until?: string;
  /** Separated by commas; `deny`: all that was refused. */
  readonly kind?: string;
  readonly sandbox?: string;
  readonly policy?: string;
  readonly host?: string;
  readonly method?: string;
  readonly rule?: string;
  readonly credential?: string;
  readonly status?: number;
  readonly code?: string;
  readonly id?: string;
  readonly text?: string;
  readonly limit?: number;
}

/** What a suppression is about; `method`, `path` and `sandbox`: any, where they are not said. */
export interface SuppressOptions {
  readonly code: string;
  /** Or `*.NAME`: what is below a name. */
  readonly host: string;
  readonly reason: string;
  /** Seconds. */
  readonly expires_in: number;
  readonly policy?: string;
  readonly method?: string;
  readonly path?: string;
  readonly sandbox?: string;
}

/** Findings that somebody looked at: notices leave them out while it is active. The log has them all. */
export interface Suppression {
  readonly id: string;
  readonly state: "open" | "active" | "expired" | "lifted";
  readonly policy: string;
  readonly code: string;
  readonly severity: "info" | "low" | "medium" | "high" | "critical";
  readonly host: string;
  readonly method?: string;
  readonly path?: string;
  readonly sandbox?: string;
  readonly reason: string;
  readonly made_by: string;
  readonly created: number;
  readonly expires: number;
  readonly accepted_by?: string;
  readonly accepted?: number;
  readonly lifted_by?: string;
  readonly lifted?: number;
}

/** A request that somebody would like a policy to allow from now on. */
export interface Proposal {
  readonly id: string;
  readonly state: "open" | "accepted" | "rejected";
  readonly sandbox: string;
  readonly policy: string;
  /** `sandbox`, or who asked the API. */
  readonly made_by: string;
  /** Where a sandbox asked: its own words, which may say anything. */
  readonly reason: string;
  readonly method: string;
  readonly target: string;
  readonly rule: Readonly<Record<string, unknown>>;
  readonly sequence: number;
  readonly created: number;
  /** Of one alone. */
  readonly diff?: string;
  readonly before?: "allow" | "ask" | "deny";
  readonly after?: "allow" | "ask" | "deny";
  readonly decided?: number;
  readonly decided_by?: string;
}

/** A request that an `ask` rule holds until somebody decides. */
export interface Approval {
  readonly id: string;
  readonly sandbox: string;
  readonly policy: string;
  readonly method: string;
  /** Without its query. */
  readonly url: string;
  /** Names and lengths only. */
  readonly query: string;
  readonly rule: string;
  readonly credential: string;
  readonly contentType: string;
  readonly uploadBytes: number | null;
  readonly sequence: number;
  readonly created: number;
  /** It is denied then. */
  readonly expires: number;
  /** The host of the fleet that holds it; null: the one that was asked. */
  readonly host: string | null;
}

/** What became of an answer. taken false (the API's 202): it is said, and the host that holds the request has not taken it
 * yet; that host may decide otherwise meanwhile. */
export interface Decision {
  readonly id: string;
  readonly decision: "allowed" | "denied";
  /** The host of the fleet that holds it; null: the one that was asked. */
  readonly host: string | null;
  readonly taken: boolean;
}

/** What a host holds of a budget of the fleet. */
export interface FleetShare {
  readonly policy: string;
  /** As "requests 1000/h". */
  readonly limit: string;
  /** The limit, of all hosts together. */
  readonly amount: number;
  readonly held: number;
}

/** A host's audit log, by the heads that it signed. */
export interface FleetLog {
  readonly state: "agrees" | "doubted" | "unknown";
  /** The number of the latest; 0: none. */
  readonly head: number;
  /** How long the log was then. */
  readonly records: number;
  readonly heard: number | null;
  readonly ageSeconds: number | null;
  readonly problems: readonly { readonly what: string; readonly text: string }[];
}

/** A host of the fleet. What it says of itself is null where nothing was read. */
export interface FleetHost {
  readonly host: string;
  /** It is the one that was asked. */
  readonly self: boolean;
  readonly state: "connected" | "silent" | "unknown";
  readonly why: string | null;
  readonly heard: number | null;
  readonly ageSeconds: number | null;
  readonly version: string | null;
  readonly uptimeSeconds: number | null;
  readonly sandboxes: number | null;
  /** Requests that wait for somebody's word. */
  readonly held: number | null;
  readonly shares: readonly FleetShare[] | null;
  readonly sharesMore: number | null;
  readonly log: FleetLog | null;
}

/** All hosts, as the one that was asked has read them `ageSeconds` ago; none of them was asked. */
export interface Fleet {
  readonly host: string | null;
  readonly connected: boolean;
  readonly read: number | null;
  readonly ageSeconds: number | null;
  readonly hosts: readonly FleetHost[];
}

/** What a policy says to a request. */
export interface Explanation {
  readonly decision: "allow" | "ask" | "deny";
  readonly code: string;
  readonly why: string;
  readonly policy: string;
  readonly authority: string;
  readonly rule: string | null;
  readonly credential: string | null;
  /** Where the credential goes. */
  readonly as: string | null;
  /** The secrets that its reply is searched for. */
  readonly searched_for?: string;
}

/** A program of the sandbox that the policy names, as it was looked at. */
export interface Service {
  readonly name: string;
  readonly port: number;
  /** "tcp", or the path of a GET. */
  readonly health: string;
  readonly state: "healthy" | "unhealthy" | "closed" | "asleep";
  readonly detail: string;
  readonly published: string | null;
  readonly preview: string | null;
}

/** A way to see a service: `link` for a browser, once and within ten minutes; `token` in the field Durward-Preview-Token
 * for programs that ask `url`. */
export interface Preview {
  readonly service: string;
  readonly port: number;
  readonly url: string;
  readonly link: string;
  readonly token: string;
  readonly linkExpiresAt: number;
  readonly expiresAt: number;
}

/** A command that runs, or a kept one that has ended. */
export interface RunningExec {
  readonly id: string;
  readonly startedAt: number;
  /** It was started by `start`. */
  readonly kept: boolean;
  readonly attached: boolean;
  /** Of a kept one that has ended and was not attached to since. */
  readonly exitCode?: number;
}

/** What happened to a sandbox. */
export interface DaemonEvent {
  readonly sequence: number;
  readonly time: number;
  readonly sandbox: string;
  readonly event: string;
  readonly detail: string;
}

/** What the daemon says, read as JSON. Its shape is the daemon's promise, and tested there. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Json = any;

export function readInfo(v: Json): SandboxInfo {
  return {
    id: v.id, name: v.name, policy: v.policy, state: v.state, reason: v.reason,
    generation: v.generation, labels: { ...v.labels }, workdir: v.workdir, createdAt: v.created_at,
    expiresAt: v.expires_at, ttl: v.ttl, idleTtl: v.idle_ttl, idleExpiresAt: v.idle_expires_at,
    softTtl: v.soft_ttl, softExpiresAt: v.soft_expires_at, onSoftTtl: v.on_soft_ttl,
    backend: v.backend, image: v.image, kept: v.kept, onIdle: v.on_idle, autoResume: v.auto_resume,
    parent: v.parent, snapshot: v.snapshot, template: v.template, denied: v.denied, published: v.published, volumes: v.volumes,
  };
}

/** A line of a watch; its end is thrown. */
export function readEvent(v: Json): FileEvent {
  if (v.type === "end")
    throw v.code === "unavailable" ? new DurwardError("the watch ended: " + v.message, "stream_ended")
      : new FileError(v.message, v.code, 200);
  if (v.type === "ready") return { type: "ready" };
  if (v.type === "overflow") return { type: "overflow", reason: v.reason };
  const path = v.encoding === "base64" ? Buffer.from(v.path, "base64") : v.path;
  return { type: v.type, path, directory: v.directory };
}

export function readRunning(v: Json): RunningExec {
  return {
    id: v.id, startedAt: v.started_at, kept: v.kept ?? false, attached: v.attached ?? false,
    ...(v.exit_code === undefined ? {} : { exitCode: v.exit_code }),
  };
}

export function readSnapshot(v: Json): Snapshot {
  return { name: v.name, state: v.state, sandbox: v.sandbox, policy: v.policy, image: v.image, createdAt: v.created_at };
}

export function readTemplate(v: Json): Template {
  return {
    name: v.name, policy: v.policy, image: v.image, snapshot: v.snapshot, warmUp: v.warm_up, labels: { ...v.labels },
    ports: v.ports, volumes: v.volumes, ttl: v.ttl, idleTtl: v.idle_ttl, onIdle: v.on_idle, softTtl: v.soft_ttl,
    onSoftTtl: v.on_soft_ttl, pool: v.pool, ready: v.ready, making: v.making, claimed: v.claimed ?? null,
    missed: v.missed ?? null, failures: v.failures ?? null, retryIn: v.retry_in ?? null, reason: v.reason ?? null,
  };
}

export function readPreview(v: Json): Preview {
  return {
    service: v.service, port: v.port, url: v.url, link: v.link, token: v.token, linkExpiresAt: v.link_expires_at,
    expiresAt: v.expires_at,
  };
}

export function readVolume(v: Json): Volume {
  return {
    name: v.name, policy: v.policy, state: v.state, size: v.size, used: v.used ?? null, access: v.access,
    snapshotOf: v.snapshot_of, labels: { ...v.labels }, createdAt: v.created_at,
    mounted: v.mounted.map((m: Json) => ({ sandbox: m.sandbox, path: m.path, readOnly: m.read_only })),
  };
}

export function readApproval(v: Json): Approval {
  return {
    id: v.id, sandbox: v.sandbox, policy: v.policy, method: v.method, url: v.url, query: v.query, rule: v.rule,
    credential: v.credential, contentType: v.content_type, uploadBytes: v.upload_bytes, sequence: v.sequence,
    created: v.created, expires: v.expires, host: v.host ?? null,
  };
}

export function readDecision(v: Json): Decision {
  return { id: v.id, decision: v.decision, host: v.host ?? null, taken: v.taken ?? true };
}

function readFleetHost(v: Json): FleetHost {
  const l = v.log;
  return {
    host: v.host, self: v.this, state: v.state, why: v.why, heard: v.heard, ageSeconds: v.age_seconds, version: v.version,
    uptimeSeconds: v.uptime_seconds, sandboxes: v.sandboxes, held: v.held, shares: v.shares, sharesMore: v.shares_more,
    log: l && { state: l.state, head: l.head, records: l.records, heard: l.heard, ageSeconds: l.age_seconds, problems: l.problems },
  };
}

export function readFleet(v: Json): Fleet {
  return { host: v.host, connected: v.connected, read: v.read, ageSeconds: v.age_seconds, hosts: v.hosts.map(readFleetHost) };
}

export function bytesOf(text: string, encoding: string): Uint8Array {
  return Buffer.from(text, encoding === "base64" ? "base64" : "utf8");
}

export function readResult(v: Json): ExecResult {
  const output = bytesOf(v.stdout ?? v.output, v.encoding);
  return {
    id: v.id, exitCode: v.exit_code, output, stderr: bytesOf(v.stderr ?? "", v.encoding),
    get text() { return new TextDecoder().decode(this.output); },
    truncated: v.truncated, timedOut: v.timed_out, message: v.message, durationMs: v.duration_ms,
  };
}

export function readEntry(v: Json): FileEntry {
  const raw = bytesOf(v.name, v.encoding);
  return {
    name: Buffer.from(raw).toString("utf8"), raw, type: v.type, size: v.size,
    mode: parseInt(v.mode, 8), modifiedAt: v.modified_at, version: v.version ?? null,
  };
}

export function readFileResult(v: Json): FileResult {
  return {
    path: v.path,
    data: v.data === undefined ? null : bytesOf(v.data, v.encoding),
    error: v.error ? new FileError(`${v.error.message} (${v.error.code})`, v.error.code, 200) : null,
  };
}
