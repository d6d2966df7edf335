/** One sandbox: its commands and its files. */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";

import { Where } from "./address.js";
import { asFileError, BadRequest, Conflict, DurwardError, FileError } from "./errors.js";
import {
  bytesOf, readEntry, readEvent, readFileResult, readInfo, readPreview, readResult, readRunning, readSnapshot, type ExecEvent, type ExecResult,
  type FileEntry, type FileEvent, type FileResult, type Json, type OnIdle, type OnSoftTtl, type Path, type Preview, type RunningExec, type SandboxInfo,
  type Service, type Snapshot,
} from "./models.js";
import { quoted, sandboxTarget } from "./target.js";
import { ask, lines, open, upgrade, type Call } from "./transport.js";

/** How a command is run. */
export interface ExecOptions {
  /** Default: the sandbox's workdir. */
  readonly cwd?: string;
  /** Beside the sandbox's own, and winning over it. */
  readonly env?: Readonly<Record<string, string>>;
  /** Seconds, then it is killed and the exit code is 124 (default 1800; 0: none). */
  readonly timeout?: number;
  readonly stdin?: string | Uint8Array;
  /** Standard error apart from standard output. */
  readonly split?: boolean;
  /** Bytes kept of each output (default 8 MiB); `truncated` says that there was more. */
  readonly maxOutput?: number;
  /** Aborting kills the command. */
  readonly signal?: AbortSignal;
}

/** Of a command that outlives its client: its time has no end unless `timeout` says so. */
export interface StartOptions extends Omit<ExecOptions, "maxOutput"> {
  /** A terminal of its own. */
  readonly tty?: boolean;
}

/** What is changed of a sandbox; what is left out stays. */
export interface Changes {
  /** All of them anew. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Counted from now. */
  readonly ttl?: number;
  readonly idleTtl?: number;
  /** Counted from now. */
  readonly softTtl?: number;
}

/** What a fork may have otherwise than the one it is of. */
export interface ForkOptions {
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly ttl?: number;
  readonly idleTtl?: number;
  readonly onIdle?: OnIdle;
  readonly softTtl?: number;
  readonly onSoftTtl?: OnSoftTtl;
  readonly autoResume?: boolean;
}

/** What creating and forking are asked with alike. */
export function createBody(o: ForkOptions): Record<string, unknown> {
  return {
    name: o.name, labels: o.labels, env: o.env, ttl: o.ttl, idle_ttl: o.idleTtl, on_idle: o.onIdle,
    soft_ttl: o.softTtl, on_soft_ttl: o.onSoftTtl, auto_resume: o.autoResume,
  };
}

/** A small operation of a batch, as the API's document has them. */
export interface Operation {
  readonly op: "read" | "write" | "delete";
  readonly path: string;
  readonly data?: string;
  readonly encoding?: "utf-8" | "base64";
  readonly recursive?: boolean;
  readonly mode?: string;
}

const EXEC_TIMEOUT = 1800; // seconds, the API's default

/** JSON without what is undefined. */
export function json(value: Record<string, unknown>): Uint8Array {
  return Buffer.from(JSON.stringify(value), "utf8");
}

function wish(command: string | readonly string[], o: ExecOptions): Record<string, unknown> & { id: string } {
  return {
    id: "sdk-" + randomBytes(8).toString("hex"),
    ...(typeof command === "string" ? { command } : { argv: command }),
    cwd: o.cwd, env: o.env, timeout: o.timeout, max_output: o.maxOutput, split: o.split || undefined,
    ...(o.stdin === undefined
      ? {}
      : { stdin: Buffer.from(o.stdin as string).toString("base64"), stdin_encoding: "base64" }),
  };
}

/** How long the answer may take: the command's own time, and some for the way. */
function waitFor(timeout: number | undefined): number {
  const seconds = timeout ?? EXEC_TIMEOUT;
  return seconds ? seconds + 60 : 0;
}

/** One sandbox. It stays until it is deleted, or its time to live is over. */
export class Sandbox {
  readonly where: Where;

  /** @param socket the daemon's. @param info what is known of it; `refresh` asks anew. */
  constructor(socket: string | Where, public info: SandboxInfo) {
    this.where = Where.of(socket);
  }

  /** The daemon's path or URL. */
  get socket(): string {
    return this.where.text;
  }

  /** What it is found by: get(id). */
  get id(): string {
    return this.info.id;
  }

  #ask(call: Call): Promise<Buffer> {
    return ask(this.where, call);
  }

  #file(tail: string, path: Path, more: Record<string, string | undefined> = {}): string {
    return sandboxTarget(this.id, tail, [["path", path], ...Object.entries(more)]);
  }

  /** Asks again; `.info` is the answer. */
  async refresh(): Promise<SandboxInfo> {
    const b = await this.#ask({ method: "GET", target: sandboxTarget(this.id) });
    return (this.info = readInfo(JSON.parse(b.toString("utf8"))));
  }

  /** Other labels (all of them anew), other times in seconds; ttl and softTtl count from now. */
  async update(o: Changes): Promise<SandboxInfo> {
    const body = json({ labels: o.labels, ttl: o.ttl, idle_ttl: o.idleTtl, soft_ttl: o.softTtl });
    const b = await this.#ask({ method: "PATCH", target: sandboxTarget(this.id), body });
    return (this.info = readInfo(JSON.parse(b.toString("utf8"))));
  }

  /** Idempotent; answers when nothing of it is left. */
  async delete(): Promise<void> {
    await this.#ask({ method: "DELETE", target: sandboxTarget(this.id), again: true });
  }

  async #verb(verb: string, wait?: number, body?: Uint8Array): Promise<SandboxInfo> {
    const b = await this.#ask({ method: "POST", target: sandboxTarget(this.id, "/" + verb), wait, body });
    return (this.info = readInfo(JSON.parse(b.toString("utf8"))));
  }

  /** Freeze its processes; Unsupported where the host cannot. */
  pause(): Promise<SandboxInfo> {
    return this.#verb("pause");
  }

  /** End its processes; its files stay where `info.kept` says so. */
  stop(): Promise<SandboxInfo> {
    return this.#verb("stop");
  }

  /** It runs when this resolves; a stopped one starts anew above its files. */
  resume(): Promise<SandboxInfo> {
    return this.#verb("resume", 300);
  }

  /** Another sandbox with a copy of this one's files, and placeholders of its own. */
  async fork(o: ForkOptions = {}): Promise<Sandbox> {
    const b = await this.#ask({
      method: "POST", target: sandboxTarget(this.id, "/fork"), body: json(createBody(o)), wait: 300,
    });
    return new Sandbox(this.where, readInfo(JSON.parse(b.toString("utf8"))));
  }

  /** Keep a copy of its files. getOrCreate: one of this name that is there, whosever. */
  async snapshot(name: string, o: { readonly getOrCreate?: boolean } = {}): Promise<Snapshot> {
    const body = json({ sandbox: this.id, name, get_or_create: o.getOrCreate || undefined });
    const b = await this.#ask({ method: "POST", target: "/v1/snapshots", body, wait: 300 });
    return readSnapshot(JSON.parse(b.toString("utf8")));
  }

  /** A snapshot's files in place of its own. What runs in it is ended. */
  restore(snapshot: string): Promise<SandboxInfo> {
    return this.#verb("restore", 300, json({ snapshot }));
  }

  /** For `await using`: deletes it. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.delete();
  }

  // ---- commands ----

  /** Commands that run now. */
  async execs(): Promise<RunningExec[]> {
    const b = await this.#ask({ method: "GET", target: sandboxTarget(this.id, "/exec") });
    return JSON.parse(b.toString("utf8")).execs.map(readRunning);
  }

  /** Start a command that outlives this client (but not the daemon); `attach` comes to it, `cancel` ends it. At most
   * 16 of them in a sandbox. */
  async start(command: string | readonly string[], o: StartOptions = {}): Promise<RunningExec> {
    const asked = wish(command, { timeout: 0, ...o });
    const b = await this.#ask({
      method: "POST", target: sandboxTarget(this.id, "/exec"), body: json({ ...asked, tty: o.tty || undefined, keep: true }), signal: o.signal,
    });
    return readRunning(JSON.parse(b.toString("utf8")));
  }

  /** What a command that `start` started wrote last (at most 256 KiB), what it writes, and `exit` as the last. Leaving
   * the loop leaves the command. Throws where another client attaches meanwhile. */
  attach(exec: string, o: { readonly signal?: AbortSignal } = {}): AsyncGenerator<ExecEvent, void> {
    return this.#pieces({
      method: "POST", target: sandboxTarget(this.id, "/exec/" + quoted(exec) + "/attach"), signal: o.signal,
    }, o.signal);
  }

  /** Kill a command and its process group, or forget a kept one that has ended. Idempotent. */
  async cancel(exec: string): Promise<void> {
    await this.#ask({ method: "DELETE", target: sandboxTarget(this.id, "/exec/" + quoted(exec)) });
  }

  /** A connection to a TCP port of its own loopback. Yours to close. */
  forward(port: number): Promise<Socket> {
    return upgrade(this.where, sandboxTarget(this.id, "/forward", [["port", String(port)]]), "durward-forward");
  }

  /** What its policy names, each looked at now. Of a sandbox that sleeps nothing is asked. */
  async services(): Promise<Service[]> {
    const b = await this.#ask({ method: "GET", target: sandboxTarget(this.id, "/services") });
    return JSON.parse(b.toString("utf8")).services;
  }

  /** A link by which a browser sees a service, or a port, and a token for programs. ttl: seconds that who opened it may
   * look (default 8 hours). NotFound where previews are not on. */
  async preview(service: string | number, o: { readonly ttl?: number } = {}): Promise<Preview> {
    const b = await this.#ask({
      method: "POST", target: sandboxTarget(this.id, "/previews"), body: json({ service, ttl: o.ttl }),
    });
    return readPreview(JSON.parse(b.toString("utf8")));
  }

  /** End what preview() gave out for a service, or for all: links, tokens, cookies, and connections that are open. */
  async revokePreviews(service?: string | number): Promise<void> {
    const one = service === undefined ? "" : `/${encodeURIComponent(service)}`;
    await this.#ask({ method: "DELETE", target: sandboxTarget(this.id, `/previews${one}`) });
  }

  /** Run a command to its end: text by /bin/sh -c, a list as it is. */
  async exec(command: string | readonly string[], o: ExecOptions = {}): Promise<ExecResult> {
    const asked = wish(command, o);
    try {
      const b = await this.#ask({
        method: "POST", target: sandboxTarget(this.id, "/exec"), wait: waitFor(o.timeout),
        body: json({ ...asked, encoding: "base64" }), signal: o.signal,
      });
      return readResult(JSON.parse(b.toString("utf8")));
    } catch (e) {
      // A connection that ends does not end a command that is not streamed.
      if (o.signal?.aborted)
        await this.#ask({ method: "DELETE", target: sandboxTarget(this.id, "/exec/" + asked.id), wait: 5 })
          .catch(() => undefined);
      throw e;
    }
  }

  /** Pieces of output as they come; `exit` is the last. Leaving the loop kills the command. */
  stream(command: string | readonly string[], o: ExecOptions = {}): AsyncGenerator<ExecEvent, void> {
    return this.#pieces({
      method: "POST", target: sandboxTarget(this.id, "/exec"), wait: waitFor(o.timeout),
      body: json({ ...wish(command, o), stream: true }), signal: o.signal,
    }, o.signal);
  }

  async *#pieces(call: Call, signal?: AbortSignal): AsyncGenerator<ExecEvent, void> {
    const answer = await open(this.where, call);
    const stop = () => answer.destroy();
    signal?.addEventListener("abort", stop, { once: true });
    let id = "";
    try {
      for await (const line of lines(this.where, answer)) {
        const v: Json = JSON.parse(line);
        if (v.type === "started") {
          id = v.id;
        } else if (v.type === "detached") {
          throw new Conflict("another client has attached to the command", "detached");
        } else if (v.type === "exit") {
          yield { type: "exit", ...readResult({ ...v, id, output: "", encoding: "utf-8" }) };
          return;
        } else {
          yield { type: v.type, data: bytesOf(v.data, "base64") };
        }
      }
      throw new DurwardError(
        "the daemon ended the stream before the command's end: it stopped, or the sandbox was deleted",
        "stream_ended");
    } catch (e) {
      throw signal?.aborted ? signal.reason : e;
    } finally {
      signal?.removeEventListener("abort", stop);
      answer.destroy();
    }
  }

  // ---- files ----

  /** What happens below a directory (default: the workdir), at any depth; `ready` comes first. skip: names that are
   * not looked at, such as node_modules. Throws when the directory is gone or the sandbox is stopped; leaving the loop
   * ends it. */
  async *watch(path?: string, o: { readonly skip?: readonly string[]; readonly signal?: AbortSignal } = {}): AsyncGenerator<FileEvent, void> {
    const answer = await open(this.where, {
      method: "POST", target: sandboxTarget(this.id, "/files/watch"), wait: 60, body: json({ path, skip: o.skip }), signal: o.signal,
    });
    const stop = () => answer.destroy();
    o.signal?.addEventListener("abort", stop, { once: true });
    try {
      for await (const line of lines(this.where, answer)) yield readEvent(JSON.parse(line));
      throw new DurwardError("the daemon ended the watch: it stopped, or the sandbox was deleted", "stream_ended");
    } catch (e) {
      throw o.signal?.aborted ? o.signal.reason : e;
    } finally {
      o.signal?.removeEventListener("abort", stop);
      answer.destroy();
    }
  }

  /** All of a file. FileError: file_not_found, is_directory, permission_denied, too_large (over 64 MiB). */
  async read(path: Path): Promise<Uint8Array> {
    return this.#ask({ method: "GET", target: this.#file("/files", path) });
  }

  /** 64 MiB at most; parents are made. mode: of a file that is made (default 0o644). ifVersion: only over this version
   * (FileEntry.version), or, "none", where nothing is, and whole or not at all; else `changed`. */
  async write(path: Path, data: string | Uint8Array, mode?: number, o: { readonly ifVersion?: string } = {}): Promise<void> {
    const more = { mode: mode === undefined ? undefined : mode.toString(8).padStart(4, "0"), if_version: o.ifVersion };
    const body = typeof data === "string" ? Buffer.from(data, "utf8") : data;
    await this.#ask({ method: "PUT", target: this.#file("/files", path, more), body });
  }

  /** A file, or an empty directory; recursive: with all below it. ifVersion: only this version (FileEntry.version), not with
   * recursive. FileError: file_not_found, not_empty, `changed`. */
  async remove(path: Path, o: { readonly recursive?: boolean; readonly ifVersion?: string } = {}): Promise<void> {
    const more = { recursive: o.recursive ? "true" : "false", if_version: o.ifVersion };
    await this.#ask({ method: "DELETE", target: this.#file("/files", path, more) });
  }

  /** What is at this path; a link itself, not what it leads to. */
  async stat(path: Path): Promise<FileEntry> {
    const b = await this.#ask({ method: "GET", target: this.#file("/files/stat", path) });
    return readEntry(JSON.parse(b.toString("utf8")));
  }

  /** At most 16384 entries. */
  async listFiles(path: Path): Promise<FileEntry[]> {
    const b = await this.#ask({ method: "GET", target: this.#file("/files/list", path) });
    return JSON.parse(b.toString("utf8")).entries.map(readEntry);
  }

  /** One result for each file, in order; what goes wrong with one is in its result. */
  upload(files: Iterable<readonly [Path, string | Uint8Array]>): Promise<FileResult[]> {
    return each(files, ([path]) => path, async ([path, data]) => (await this.write(path, data), null));
  }

  /** One result for each path, in order: its bytes, or what went wrong. */
  download(paths: Iterable<Path>): Promise<FileResult[]> {
    return each(paths, (path) => path, (path) => this.read(path));
  }

  /** Small operations in one request. */
  async batch(operations: readonly Operation[]): Promise<FileResult[]> {
    const b = await this.#ask({
      method: "POST", target: sandboxTarget(this.id, "/files/batch"), body: json({ operations }), wait: 300,
    });
    return JSON.parse(b.toString("utf8")).results.map(readFileResult);
  }

  /** A directory as a tar archive (64 MiB at most), by the tar in the sandbox. */
  readTar(path: Path): Promise<Uint8Array> {
    return this.#ask({ method: "GET", target: this.#file("/tar", path), wait: 300 });
  }

  /** Unpack an archive below a directory, which is made, by the tar in the sandbox. */
  async writeTar(path: Path, data: Uint8Array): Promise<void> {
    await this.#ask({ method: "PUT", target: this.#file("/tar", path), body: data, wait: 300 });
  }
}

/** One after the other. Anything but a file's own failure ends it. */
async function each<T>(items: Iterable<T>, pathOf: (item: T) => Path,
                       operation: (item: T) => Promise<Uint8Array | null>): Promise<FileResult[]> {
  const results: FileResult[] = [];
  for (const item of items) {
    const path = pathOf(item);
    try {
      results.push({ path, data: await operation(item), error: null });
    } catch (e) {
      if (!(e instanceof FileError || e instanceof BadRequest)) throw e;
      results.push({ path, data: null, error: asFileError(e) });
    }
  }
  return results;
}
