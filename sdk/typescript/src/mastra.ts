/** Mastra: a Workspace whose commands and files are in a sandbox of Durward.
 *
 *   new Workspace({ sandbox: new DurwardSandbox(box), filesystem: new DurwardFilesystem(box) })
 *
 * Nothing of Mastra is imported: the types are those that it publishes, by their form. The sandbox is yours: what Mastra
 * calls stop and destroy leave it. Mastra's process manager is a class of its own, so that commands in the background
 * are those of the shell. */
import { posix } from "node:path";

import { DurwardError, FileError, Unsupported } from "./errors.js";
import type { FileEntry } from "./models.js";
import type { Sandbox } from "./sandbox.js";

const OUTPUT_MAX = 8 << 20; // bytes kept of each output of a command

interface CommandOptions {
  /** Milliseconds. */
  readonly timeout?: number;
  readonly env?: Record<string, string | undefined>;
  readonly cwd?: string;
  readonly onStdout?: (data: string) => void;
  readonly onStderr?: (data: string) => void;
  readonly abortSignal?: AbortSignal;
  readonly maxRetainedBytes?: number;
}

export interface MastraOptions {
  /** Default: the sandbox's workdir. */
  readonly cwd?: string;
  /** Seconds of a command for which nobody asks another (default 600). */
  readonly timeout?: number;
}

const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** Mastra's WorkspaceSandbox. */
export class DurwardSandbox {
  readonly id: string;
  readonly name = "Durward";
  readonly provider = "durward";
  readonly supportsCheckpoints = false;
  status: "running" | "stopped" = "running";
  readonly #cwd: string;

  constructor(readonly box: Sandbox, readonly options: MastraOptions = {}) {
    this.id = box.id;
    this.#cwd = options.cwd ?? box.info.workdir;
  }

  async start(): Promise<void> {
    if ((await this.box.refresh()).state !== "running") await this.box.resume();
    this.status = "running";
  }

  async stop(): Promise<void> {
    this.status = "stopped";
  }

  async destroy(): Promise<void> {
    this.status = "stopped";
  }

  /** Mastra's checkpoints have no names here: box.snapshot(name) has. */
  async snapshot(): Promise<void> {
    return;
  }

  getInstructions(): string {
    return `Commands run in a sandbox and start in ${this.#cwd}. Network requests leave it only where its policy allows them.`;
  }

  async getInfo() {
    const i = await this.box.refresh();
    return {
      id: i.id, name: this.name, provider: this.provider, status: i.state === "running" ? ("running" as const) : ("stopped" as const),
      createdAt: new Date(i.createdAt * 1000), timeoutAt: new Date(i.expiresAt * 1000), metadata: { policy: i.policy },
    };
  }

  async executeCommand(command: string, args: string[] = [], o: CommandOptions = {}) {
    const began = Date.now();
    const env = Object.fromEntries(Object.entries(o.env ?? {}).filter((e): e is [string, string] => e[1] !== undefined));
    const most = Math.min(o.maxRetainedBytes ?? OUTPUT_MAX, OUTPUT_MAX);
    const kept = { stdout: new Tail(most), stderr: new Tail(most) };
    let exit: { exitCode: number; timedOut: boolean } | undefined;
    const events = this.box.stream([command, ...args.map(quoted)].join(" "), {
      cwd: posix.resolve(this.#cwd, o.cwd ?? "."), env, split: true,
      timeout: o.timeout === undefined ? (this.options.timeout ?? 600) : Math.max(1, Math.ceil(o.timeout / 1000)),
      ...(o.abortSignal === undefined ? {} : { signal: o.abortSignal }),
    });
    for await (const e of events) {
      if (e.type === "exit") {
        exit = e;
        continue;
      }
      const name = e.type === "stderr" ? "stderr" : "stdout";
      const text = kept[name].add(e.data);
      if (text) (name === "stderr" ? o.onStderr : o.onStdout)?.(text);
    }
    if (exit === undefined) throw new DurwardError("the command's stream had no end", "stream_ended");
    return {
      command, args, success: exit.exitCode === 0, exitCode: exit.exitCode, stdout: kept.stdout.text, stderr: kept.stderr.text,
      executionTimeMs: Date.now() - began, timedOut: exit.timedOut, killed: exit.timedOut,
      stdoutTruncated: kept.stdout.dropped > 0, stderrTruncated: kept.stderr.dropped > 0,
      stdoutDroppedBytes: kept.stdout.dropped, stderrDroppedBytes: kept.stderr.dropped,
    };
  }

  async writeFiles(files: { path: string; content: string | Uint8Array; mode?: number }[], o: { abortSignal?: AbortSignal } = {}): Promise<void> {
    for (const f of files) {
      o.abortSignal?.throwIfAborted();
      await this.box.write(posix.resolve(this.#cwd, f.path), f.content, f.mode);
    }
  }
}

/** The last bytes of an output, and its pieces as text. */
class Tail {
  #kept = Buffer.alloc(0);
  dropped = 0;
  readonly #decoder = new TextDecoder();

  constructor(readonly most: number) {}

  add(data: Uint8Array): string {
    this.#kept = Buffer.concat([this.#kept, data]);
    const over = this.#kept.length - this.most;
    if (over > 0) {
      this.dropped += over;
      this.#kept = this.#kept.subarray(over);
    }
    return this.#decoder.decode(data, { stream: true });
  }

  get text(): string {
    return this.#kept.toString("utf8");
  }
}

interface RemoveOptions {
  readonly recursive?: boolean;
  readonly force?: boolean;
}

const missing = (e: unknown): boolean => e instanceof FileError && e.code === "file_not_found";

/** Mastra's WorkspaceFilesystem. */
export class DurwardFilesystem {
  readonly id: string;
  readonly name = "DurwardFilesystem";
  readonly provider = "durward";
  readonly status = "ready" as const;
  readonly basePath: string;

  constructor(readonly box: Sandbox, o: { readonly root?: string; readonly readOnly?: boolean } = {}) {
    this.id = box.id + "-files";
    this.basePath = o.root ?? box.info.workdir;
    this.readOnly = o.readOnly === true;
  }

  readonly readOnly: boolean;

  #at(path: string): string {
    return posix.resolve(this.basePath, path);
  }

  #writes(): void {
    if (this.readOnly) throw new Unsupported("this file system is for reading only", "read_only");
  }

  resolveAbsolutePath(path: string): string {
    return this.#at(path);
  }

  async #sh(argv: string[]): Promise<void> {
    this.#writes();
    const r = await this.box.exec(argv, { cwd: "/", split: true });
    if (r.exitCode !== 0) throw new FileError(Buffer.from(r.stderr).toString("utf8") || `${argv[0]} failed`, "unavailable");
  }

  async readFile(path: string, o: { encoding?: BufferEncoding } = {}): Promise<string | Buffer> {
    const data = Buffer.from(await this.box.read(this.#at(path)));
    return o.encoding === undefined ? data : data.toString(o.encoding);
  }

  async writeFile(path: string, content: string | Uint8Array, o: { overwrite?: boolean; expectedMtime?: Date } = {}): Promise<void> {
    this.#writes();
    let ifVersion = o.overwrite === false ? "none" : undefined;
    if (o.expectedMtime !== undefined) {
      const s = await this.box.stat(this.#at(path));
      if (Math.floor(o.expectedMtime.getTime() / 1000) !== Math.floor(s.modifiedAt))
        throw new FileError(`${path} was changed since it was read`, "changed");
      if (s.version !== null) ifVersion = s.version;
    }
    await this.box.write(this.#at(path), content, undefined, ifVersion === undefined ? {} : { ifVersion });
  }

  async appendFile(path: string, content: string | Uint8Array): Promise<void> {
    this.#writes();
    const r = await this.box.exec(["sh", "-c", 'cat >>"$1"', "sh", this.#at(path)], { cwd: "/", stdin: content, split: true });
    if (r.exitCode !== 0) throw new FileError(Buffer.from(r.stderr).toString("utf8"), "unavailable");
  }

  async deleteFile(path: string, o: RemoveOptions = {}): Promise<void> {
    this.#writes();
    try {
      await this.box.remove(this.#at(path), { recursive: o.recursive === true });
    } catch (e) {
      if (!(o.force && missing(e))) throw e;
    }
  }

  rmdir(path: string, o: RemoveOptions = {}): Promise<void> {
    return this.deleteFile(path, o);
  }

  copyFile(src: string, dest: string, o: { overwrite?: boolean; recursive?: boolean } = {}): Promise<void> {
    return this.#sh(["cp", ...(o.recursive ? ["-R"] : []), ...(o.overwrite === false ? ["-n"] : []), "-T", "--", this.#at(src), this.#at(dest)]);
  }

  moveFile(src: string, dest: string, o: { overwrite?: boolean } = {}): Promise<void> {
    return this.#sh(["mv", ...(o.overwrite === false ? ["-n"] : ["-f"]), "-T", "--", this.#at(src), this.#at(dest)]);
  }

  mkdir(path: string, o: { recursive?: boolean } = {}): Promise<void> {
    return this.#sh(["mkdir", ...(o.recursive === false ? [] : ["-p"]), "--", this.#at(path)]);
  }

  async readdir(path: string, o: { recursive?: boolean; extension?: string | string[]; maxDepth?: number } = {}) {
    const found: { name: string; type: "file" | "directory"; size?: number; isSymlink?: boolean }[] = [];
    const fits = (e: FileEntry) => o.extension === undefined || [o.extension].flat().some((x) => e.name.endsWith(x));
    const most = o.recursive ? (o.maxDepth ?? 32) : 1;
    const visit = async (at: string, before: string, depth: number): Promise<void> => {
      for (const e of await this.box.listFiles(at)) {
        const name = posix.join(before, e.name);
        if (e.type === "directory") {
          found.push({ name, type: "directory" });
          if (depth < most) await visit(posix.join(at, e.name), name, depth + 1);
        } else if (fits(e)) {
          found.push({ name, type: "file", size: e.size, ...(e.type === "symlink" ? { isSymlink: true } : {}) });
        }
      }
    };
    await visit(this.#at(path), "", 1);
    return found;
  }

  async exists(path: string): Promise<boolean> {
    try {
      await this.box.stat(this.#at(path));
      return true;
    } catch (e) {
      if (missing(e)) return false;
      throw e;
    }
  }

  async stat(path: string) {
    const e = await this.box.stat(this.#at(path)), at = new Date(e.modifiedAt * 1000);
    return {
      name: posix.basename(this.#at(path)), path: this.#at(path), type: e.type === "directory" ? ("directory" as const) : ("file" as const),
      size: e.type === "directory" ? 0 : e.size, createdAt: at, modifiedAt: at,
    };
  }
}
