/** Another provider's sandbox behind Durward's proxy.
 *
 * What is inside gets an identity, variables and certificates, so that every client finds the proxy. It holds a client
 * that wants to go round it only as far as the provider's own network lock lets nothing else out: pair() looks from
 * inside whether it does, and says what it found. */
import { randomBytes } from "node:crypto";

import {
  adaptSandboxProtocol, type DeleteResult, type EditResult, type ExecuteResponse,
  type FileDownloadResponse, type FileUploadResponse, type GlobResult, type GrepResult, type LsResult, type ReadRawResult,
  type ReadResult, type SandboxBackendProtocol, type SandboxBackendProtocolV2, type WriteResult,
} from "deepagents";

import type { Where } from "./address.js";
import { Durward, type Identity } from "./client.js";
import { DurwardError } from "./errors.js";
import { PROBE } from "./probe.js";
import { plainPath, reachedAt, trustFiles, variables } from "./trust.js";

/** The sandbox is not behind the proxy. */
export class PairingError extends DurwardError {}

/** What was seen from inside. */
export interface Verification {
  /** The proxy answered as ours does, and knows this identity. */
  readonly throughGate: boolean;
  /** What was reached without it. */
  readonly around: readonly string[];
  /** One line for people. */
  readonly detail: string;
}

export interface PairingOptions {
  /** Of its identity. */
  readonly policy?: string;
  /** The daemon's. */
  readonly socket?: string | Where;
  /** HOST or HOST:PORT at which the sandbox reaches the listener, if not where the configuration says. */
  readonly proxyHost?: string;
  /** Seconds of a token (default 3600, the most); renewed before commands. */
  readonly ttl?: number;
  /** Of our files inside; default one below /tmp. */
  readonly folder?: string;
}

/** Of either version of deepagents' protocol. */
export type AnyBackend = SandboxBackendProtocol | SandboxBackendProtocolV2;

export interface PairOptions extends PairingOptions {
  /** What is tried without the proxy: tcp:HOST:PORT, udp:HOST:PORT (a DNS question), name:HOST (a lookup). */
  readonly elsewhere?: readonly string[];
  /** PairingError when one of them is reached, else a warning. */
  readonly requireLock?: boolean;
}

export const ELSEWHERE: readonly string[] = [
  "tcp:1.1.1.1:443", "tcp:8.8.8.8:53", "tcp:[2606:4700:4700::1111]:443", "tcp:169.254.169.254:80", "udp:8.8.8.8:53",
  "name:example.com",
];
const TARGET = /^(?:(?:tcp|udp):(?:\[[0-9A-Fa-f:.]+\]|[^\s:[\]]+):[0-9]{1,5}|name:[^\s:]+)$/;
const RENEW_BEFORE = 1800; // seconds that a token must still be good when a command starts

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
const now = () => Date.now() / 1000;

/** TypeError for what could not be tried: it would count as not reached. */
function targets(elsewhere: readonly string[], requireLock = false): readonly string[] {
  if (!Array.isArray(elsewhere)) throw new TypeError("elsewhere is a list of targets");
  for (const e of elsewhere)
    if (typeof e !== "string" || !TARGET.test(e))
      throw new TypeError(`elsewhere: ${JSON.stringify(e)} is none of tcp:HOST:PORT, udp:HOST:PORT, name:HOST`);
  if (requireLock && !elsewhere.length) throw new TypeError("requireLock needs something in elsewhere that is tried");
  return elsewhere;
}

/** TypeError for what is no backend: what is called here must be there. */
function usable(backend: AnyBackend): AnyBackend {
  const given: Record<string, unknown> = Object(backend);
  const lacking = ["id", "execute", "uploadFiles"].filter((n) => !(n in given) || given[n] === undefined);
  if (lacking.length)
    throw new TypeError(
      "pair() wants a sandbox backend of deepagents, an object with id, execute(command) and " +
        `uploadFiles([[path, bytes]]); this one has no ${lacking.join(", ")}`);
  return backend;
}

/** Put any sandbox behind the proxy of a daemon. PairingError, and nothing left issued, when the proxy is not reached
 * from inside. What gets around it is a process warning (BypassWarning), with requireLock a PairingError. */
export async function pair(backend: AnyBackend, o: PairOptions = {}): Promise<PairedSandbox> {
  const tried = targets(o.elsewhere ?? ELSEWHERE, o.requireLock);
  const paired = await PairedSandbox.of(backend, o);
  try {
    const seen = await paired.verify(tried);
    if (!seen.throughGate || (o.requireLock && seen.around.length)) throw new PairingError(seen.detail, "not_paired");
    if (seen.around.length) process.emitWarning(seen.detail, "BypassWarning");
  } catch (e) {
    await paired.close();
    throw e;
  }
  return paired;
}

/** The backend that was given, with the proxy's variables on each command. close() revokes what was issued; the
 * sandbox itself stays its provider's. A command that runs on when its token ends is refused from then on. */
export class PairedSandbox implements SandboxBackendProtocolV2 {
  readonly folder: string;
  verification: Verification | undefined;
  readonly #backend: SandboxBackendProtocolV2;
  readonly #client: Durward;
  readonly #options: PairingOptions;
  readonly #issued: Identity[] = [];
  #renewing: Promise<void> = Promise.resolve();
  #closed = false;

  private constructor(backend: SandboxBackendProtocolV2, o: PairingOptions) {
    this.folder = plainPath(o.folder ?? "/tmp/durward-" + randomBytes(8).toString("hex"), "folder");
    this.#backend = backend;
    this.#client = new Durward(o.socket);
    this.#options = o;
  }

  /** Without looking from inside; `pair` does that too. */
  static async of(backend: AnyBackend, o: PairingOptions = {}): Promise<PairedSandbox> {
    const made = new PairedSandbox(adaptSandboxProtocol(usable(backend)), o);
    await made.#renew(true);
    return made;
  }

  get id(): string {
    return this.#backend.id;
  }

  /** The present one. */
  get identity(): Identity {
    return this.#issued[this.#issued.length - 1]!;
  }

  async #renew(withFiles: boolean): Promise<void> {
    const ttl = this.#options.ttl ?? 3600;
    const { policy } = this.#options;
    const made = await this.#client.issueIdentity({ ttl, remote: true, ...(policy === undefined ? {} : { policy }) });
    try {
      const env = variables(made, { trustDir: this.folder, proxyHost: this.#options.proxyHost });
      const text = Object.entries(env).map(([k, v]) => `export ${k}=${quote(v)}\n`).join("");
      const put: Array<[string, Uint8Array]> = [[this.folder + "/env", Buffer.from(text, "utf8")]];
      if (withFiles) for (const [name, data] of trustFiles(made)) put.push([`${this.folder}/${name}`, data]);
      for (const r of await this.uploadFiles(put))
        if (r.error) throw new PairingError(`${r.path} cannot be written in the sandbox: ${r.error}`, "upload");
    } catch (e) {
      await this.#revoke(made);
      throw e;
    }
    this.#issued.push(made);
  }

  /** Commands that start at once wait for one renewal. */
  #fresh(): Promise<void> {
    const next = this.#renewing.catch(() => undefined).then(async () => {
      if (this.#closed) throw new PairingError("this pairing is closed: pair again", "closed");
      const { expires } = this.identity;
      const least = Math.min(RENEW_BEFORE, (this.#options.ttl ?? 3600) / 2);
      if (expires !== null && expires - now() < least) await this.#renew(false);
    });
    this.#renewing = next;
    return next;
  }

  /** Not that of a listener that is bound to the policy: it is everybody's. */
  async #revoke(identity: Identity): Promise<void> {
    if (identity.token === null || (identity.expires ?? 0) < now()) return;
    await this.#client.revokeIdentity(identity.id).catch(() => undefined); // it ends by itself
  }

  /** Revoke, and take our files away where the sandbox still answers. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#renewing.catch(() => undefined);
    for (const identity of this.#issued) await this.#revoke(identity);
    try {
      await this.#backend.execute("rm -rf " + quote(this.folder));
    } catch {
      // Any provider's own error; what is there is worth nothing now.
    }
  }

  /** For `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Without our file the command does not run: it would run without the proxy. */
  async execute(command: string): Promise<ExecuteResponse> {
    try {
      await this.#fresh();
    } catch (e) {
      if (!(e instanceof DurwardError)) throw e;
      return { output: e.message, exitCode: 1, truncated: false };
    }
    return this.#backend.execute(`. ${quote(this.folder)}/env || exit 125\n${command}`);
  }

  /** Ask the proxy for a name that nobody has, and try what should not be reached. */
  async verify(elsewhere: readonly string[] = ELSEWHERE): Promise<Verification> {
    const ask = `durward-${randomBytes(8).toString("hex")}.invalid:443`;
    const words = [PROBE, ask, ...targets(elsewhere)].map(quote).join(" ");
    const seen = judge(await this.execute("python3 -c " + words),
      reachedAt(this.identity.proxy, this.#options.proxyHost));
    // What comes from inside is anybody's: one line of it, and only what was asked about.
    return (this.verification = {
      ...seen,
      around: elsewhere.filter((e) => seen.around.includes(e)),
      detail: seen.detail.split(/\s+/).join(" ").slice(0, 1000),
    });
  }

  // ---- files: the backend's own ways ----

  async uploadFiles(files: Array<[string, Uint8Array]>): Promise<FileUploadResponse[]> {
    if (!this.#backend.uploadFiles) throw new PairingError("this backend takes no files", "upload");
    return this.#backend.uploadFiles(files);
  }

  async downloadFiles(paths: string[]): Promise<FileDownloadResponse[]> {
    if (!this.#backend.downloadFiles) throw new PairingError("this backend gives no files", "download");
    return this.#backend.downloadFiles(paths);
  }

  async ls(path: string): Promise<LsResult> {
    return this.#backend.ls(path);
  }

  async read(filePath: string, offset?: number, limit?: number): Promise<ReadResult> {
    return this.#backend.read(filePath, offset, limit);
  }

  async readRaw(filePath: string): Promise<ReadRawResult> {
    return this.#backend.readRaw(filePath);
  }

  async grep(pattern: string, path?: string | null, glob?: string | null, maxCount?: number | null): Promise<GrepResult> {
    return this.#backend.grep(pattern, path, glob, maxCount);
  }

  async glob(pattern: string, path?: string): Promise<GlobResult> {
    return this.#backend.glob(pattern, path);
  }

  async write(filePath: string, content: string): Promise<WriteResult> {
    return this.#backend.write(filePath, content);
  }

  async edit(filePath: string, oldString: string, newString: string, replaceAll?: boolean): Promise<EditResult> {
    return this.#backend.edit(filePath, oldString, newString, replaceAll);
  }

  async delete(filePath: string): Promise<DeleteResult> {
    if (!this.#backend.delete) return { error: "this backend deletes no files" };
    return this.#backend.delete(filePath);
  }
}

/** proxy: the address that was tried. */
function judge(r: ExecuteResponse, proxy: string): Verification {
  let status: number, denied: string, why: string, around: string[];
  try {
    const seen = JSON.parse(r.output.trim().split("\n").at(-1) ?? "");
    [status, denied, why] = [Number(seen.status), String(seen.denied), String(seen.why)];
    around = [...seen.around].map(String);
  } catch {
    const said = r.output.split(/\s+/).join(" ").slice(0, 300);
    return { throughGate: false, around: [], detail: `the check did not run inside (exit status ${r.exitCode}): ${said}` };
  }
  const where = proxy.slice(proxy.lastIndexOf("@") + 1);
  if (status === 407)
    return { throughGate: false, around, detail: `the proxy at ${where} does not know this identity: is it another daemon's?` };
  if (status !== 403 || !denied) {
    const what = status ? `answered ${status}` : why || "is not reached";
    return { throughGate: false, around, detail: `the proxy at ${where} from inside: ${what}; is its listener reachable from there (proxyHost)?` };
  }
  if (around.length)
    return { throughGate: true, around, detail: `traffic goes through the proxy, but the sandbox also reaches ${around.join(", ")} without it: set the provider's network lock` };
  return { throughGate: true, around, detail: "traffic goes through the proxy; of what was tried nothing gets around it" };
}
