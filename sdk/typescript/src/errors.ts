/** What can go wrong, as errors whose text is one line and says what to do about it. */

/** Base of all. `code` is the API's constant, `status` its HTTP status (0: no answer came). */
export class DurwardError extends Error {
  readonly code: string;
  readonly status: number;

  constructor(message: string, code = "", status = 0, options?: ErrorOptions) {
    super(message.split(/\s+/).filter(Boolean).join(" "), options);
    this.name = new.target.name;
    this.code = code;
    this.status = status;
  }
}

/** No daemon answers, or it cannot do this now. */
export class Unavailable extends DurwardError {}
/** The daemon does not accept what was asked. */
export class BadRequest extends DurwardError {}
/** There is no such sandbox, snapshot, volume, request or identity. */
export class NotFound extends DurwardError {}
/** A name is taken, the labels belong to a sandbox of another policy, or its state does not allow it. */
export class Conflict extends DurwardError {}
/** The sandbox is stopped or on its way there. */
export class NotRunning extends DurwardError {}
/** The daemon does not serve this caller. */
export class Denied extends DurwardError {}
/** Not possible on this host, or not built yet. */
export class Unsupported extends DurwardError {}
/** About one file; `code` is file_not_found, permission_denied, is_directory, not_directory, not_empty,
 * invalid_path, too_large, unreadable, no_space, busy or unavailable. */
export class FileError extends DurwardError {}

const FILE_CODES = new Set([
  "file_not_found", "permission_denied", "is_directory", "not_directory", "not_empty",
  "invalid_path", "unreadable", "busy", "no_space", "unavailable",
]);

const HINTS = new Map([
  ["sandbox_not_found", "it was deleted, or its time to live ended: create another"],
  ["volume_not_found", "see which there are (volumes(), `durward volume ls`)"],
  ["preview_not_found", "the policy says `previews: true`, the daemon `controller: {preview: ADDRESS:PORT}`"],
  ["template_not_found", "see which there are (templates(), `durward template ls`)"],
  ["volume_in_use", "delete the sandbox that has it, or mount it read-only"],
  ["snapshot_not_found", "see which there are (snapshots(), `durward sandbox snapshot ls`)"],
  ["not_running", "resume it (resume(), `durward sandbox resume`), or create another"],
  ["conflict", "choose another name, or other labels"],
  ["create_failed", "the daemon's log says more"],
  ["limit", "end what is not needed, or try again later"],
  ["forbidden", "run as the daemon's user"],
  ["too_large", "use smaller pieces"],
  ["token", "make one with `durward token create` where the daemon runs"],
  ["scope", "make one with that scope: `durward token create --scope …`"],
  ["unsupported", "`durward doctor` says what this host can"],
]);

const KINDS = new Map<string, typeof DurwardError>([
  ["sandbox_not_found", NotFound], ["not_found", NotFound], ["snapshot_not_found", NotFound], ["conflict", Conflict],
  ["preview_not_found", NotFound], ["template_not_found", NotFound], ["volume_not_found", NotFound], ["volume_in_use", Conflict],
  ["not_running", NotRunning], ["forbidden", Denied], ["unsupported", Unsupported],
  ["bad_request", BadRequest], ["method", BadRequest], ["no_console", Unsupported], ["token", Denied],
  ["scope", Denied],
]);

function kindOf(code: string, status: number, ofFile: boolean): typeof DurwardError {
  const kind = KINDS.get(code);
  if (kind) return kind;
  if (FILE_CODES.has(code) && (ofFile || status !== 503)) return FileError;
  if (status === 503) return Unavailable;
  return status >= 400 && status < 500 ? BadRequest : DurwardError;
}

/** The error for an answer that is not 2xx. ofFile: what was asked was about one. */
export function refusal(status: number, body: Uint8Array, ofFile = true): DurwardError {
  let code: unknown, message: unknown;
  try {
    ({ code, message } = JSON.parse(Buffer.from(body).toString("utf8")).error);
  } catch {
    code = undefined;
  }
  if (typeof code !== "string" || typeof message !== "string")
    return new DurwardError(`the daemon answered ${status} without saying why`, "no_json", status);
  const hint = HINTS.get(code);
  const kind = kindOf(code, status, ofFile);
  return new kind(`${message} (${code})${hint ? `: ${hint}` : ""}`, code, status);
}

/** Of certificates, as Node names them. */
const UNTRUSTED = new Set([
  "SELF_SIGNED_CERT_IN_CHAIN", "DEPTH_ZERO_SELF_SIGNED_CERT", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID", "CERT_SIGNATURE_FAILURE", "ERR_TLS_CERT_ALTNAME_INVALID",
]);

/** The error for a socket that cannot be used. */
export function unreachable(path: string, cause: unknown): Unavailable {
  const e = cause as NodeJS.ErrnoException;
  const made = (text: string, code: string) => new Unavailable(text, code, 0, { cause });
  if (e.code === "EACCES" || e.code === "EPERM")
    return made(
      `${path} belongs to another user's daemon: run as that user, or start your own with ` +
        "`durward serve`", "permission");
  if (UNTRUSTED.has(e.code ?? ""))
    return made(`${path}: ${e.message}: give ca, or set DURWARD_CA, the file of the daemon's CA (\`durward ca export\`)`, "tls");
  if (path.startsWith("https://") && ["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH"].includes(e.code ?? ""))
    return made(
      `no Durward daemon answers at ${path} (${e.code}): its configuration says where, ` +
        "`controller: {https: ADDRESS:PORT}`", "no_daemon");
  if (e.code === "ENOENT" || e.code === "ECONNREFUSED")
    return made(
      `no Durward daemon answers at ${path}: start one with \`durward serve\`, or set ` +
        "DURWARD_SOCKET", "no_daemon");
  return made(`the Durward daemon at ${path}: ${e.message || String(cause)}`, "connection");
}

/** One file's share of a failure. */
export function asFileError(e: DurwardError): FileError {
  return e instanceof FileError ? e : new FileError(e.message, e.code, e.status, { cause: e });
}
