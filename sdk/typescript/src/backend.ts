/** A sandbox of Durward's as the backend of a deep agent. */
import {
  BaseSandbox, SandboxError, type DeleteResult, type EditResult, type ExecuteResponse, type FileDownloadResponse,
  type FileOperationError, type FileUploadResponse, type LsResult,
} from "deepagents";

import type { Where } from "./address.js";
import { Durward, type CreateOptions } from "./client.js";
import { asFileError, DurwardError, NotFound, NotRunning, type FileError } from "./errors.js";
import type { ExecResult } from "./models.js";
import type { Sandbox } from "./sandbox.js";

/** Absolute paths and what is in them. */
export type InitialFiles = Readonly<Record<string, string | Uint8Array>>;

export interface BackendOptions {
  /** The daemon's socket. Default: $DURWARD_SOCKET, else this user's daemon. */
  readonly socket?: string | Where;
  /** Seconds of a command, then it is killed and its exit code is 124 (default 1800; 0: none). */
  readonly timeout?: number;
}

export interface DurwardSandboxOptions extends CreateOptions, BackendOptions {
  /** Written before it is handed out; where one cannot be, no sandbox is left. */
  readonly initialFiles?: InitialFiles;
}

const DEFAULT_TIMEOUT = 30 * 60; // seconds

/** The errors of files that the protocol has a word for. */
const LITERALS: Readonly<Record<string, FileOperationError>> = {
  file_not_found: "file_not_found", permission_denied: "permission_denied",
  is_directory: "is_directory", invalid_path: "invalid_path", not_directory: "invalid_path",
};

/** Runs an agent's commands and keeps its files in one sandbox. Rejects for nothing that goes wrong with a
 * command or a file: the answer says it. The image must have a POSIX shell, awk, find and grep, as BaseSandbox
 * wants. */
export class DurwardSandbox extends BaseSandbox {
  readonly #options: DurwardSandboxOptions;
  #sandbox: Sandbox | undefined;
  #running = false;

  /** Makes nothing yet: `initialize` does; or use `create`. */
  constructor(options: DurwardSandboxOptions = {}) {
    super();
    this.#options = options;
  }

  /** A new sandbox. */
  static async create(options: DurwardSandboxOptions = {}): Promise<DurwardSandbox> {
    const made = new DurwardSandbox(options);
    await made.initialize();
    return made;
  }

  /** One that exists; NotFound when it does not. */
  static async fromId(id: string, options: BackendOptions = {}): Promise<DurwardSandbox> {
    return DurwardSandbox.of(await new Durward(options.socket).get(id), options);
  }

  /** The sandbox that has all these labels, else a new one; two that ask at once get the same one. */
  static async getOrCreate(
    options: Omit<DurwardSandboxOptions, "initialFiles" | "labels"> & { readonly labels: Readonly<Record<string, string>> },
  ): Promise<DurwardSandbox> {
    return DurwardSandbox.of(await new Durward(options.socket).getOrCreate(options), options);
  }

  /** One that the client has. */
  static of(sandbox: Sandbox, options: BackendOptions = {}): DurwardSandbox {
    const made = new DurwardSandbox(options);
    made.#sandbox = sandbox;
    made.#running = sandbox.info.state === "running";
    return made;
  }

  /** Make the sandbox. Once. */
  async initialize(): Promise<void> {
    if (this.#sandbox)
      throw new SandboxError("this sandbox is made already", "ALREADY_INITIALIZED");
    const { initialFiles = {}, ...options } = this.#options;
    const sandbox = await new Durward(options.socket).create(options);
    try {
      for (const r of await sandbox.upload(Object.entries(initialFiles)))
        if (r.error) throw r.error;
    } catch (e) {
      await sandbox.delete().catch(() => undefined); // its time to live ends it
      throw e;
    }
    this.#sandbox = sandbox;
    this.#running = true;
  }

  /** Not empty even before there is one: agents tell a sandbox by that. */
  get id(): string {
    return this.#sandbox?.id ?? "durward-not-made-yet";
  }

  /** As far as this object knows: made, not closed, and not found ended by a command. */
  get isRunning(): boolean {
    return this.#running;
  }

  /** The client's own object. */
  get sandbox(): Sandbox {
    if (!this.#sandbox)
      throw new SandboxError("there is no sandbox yet: call initialize(), or use create()", "NOT_INITIALIZED");
    return this.#sandbox;
  }

  /** Delete the sandbox. Idempotent. */
  async close(): Promise<void> {
    if (!this.#sandbox) return;
    await this.#sandbox.delete();
    this.#running = false;
  }

  /** For `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #text(e: unknown): string {
    if (!(e instanceof DurwardError)) throw e;
    if (e instanceof NotFound || e instanceof NotRunning) this.#running = false;
    return e.message;
  }

  override async execute(command: string, o: { readonly timeout?: number } = {}): Promise<ExecuteResponse> {
    const timeout = o.timeout ?? this.#options.timeout ?? DEFAULT_TIMEOUT;
    const sandbox = this.sandbox;
    try {
      return executed(await sandbox.exec(command, { timeout }), timeout);
    } catch (e) {
      return { output: this.#text(e), exitCode: 1, truncated: false };
    }
  }

  /** Why nothing runs in it, in one line; undefined when something does. BaseSandbox takes a sandbox that is gone for
   * an empty directory, and for one without the file: where nothing was found this is asked. */
  async #why(): Promise<string | undefined> {
    const r = await this.execute("true", { timeout: 60 });
    return r.exitCode ? r.output : undefined;
  }

  override async ls(path: string): Promise<LsResult> {
    const r = await super.ls(path);
    const why = r.files?.length ? undefined : await this.#why();
    return why ? { error: why } : r;
  }

  override async delete(filePath: string): Promise<DeleteResult> {
    const r = await super.delete(filePath);
    const why = r.error ? await this.#why() : undefined;
    return why ? { error: why } : r;
  }

  override async edit(path: string, oldString: string, newString: string, replaceAll = false): Promise<EditResult> {
    const r = await super.edit(path, oldString, newString, replaceAll);
    const why = r.error ? await this.#why() : undefined;
    return why ? { error: why } : r;
  }

  /** One after the other, as they were given: the last of two with one path stays. */
  override async uploadFiles(files: Array<[string, Uint8Array]>): Promise<FileUploadResponse[]> {
    const sandbox = this.sandbox;
    const answers: FileUploadResponse[] = [];
    for (const [path, data] of files) {
      try {
        await sandbox.write(path, data);
        answers.push({ path, error: null });
      } catch (e) {
        answers.push({ path, error: this.#fileError(e) });
      }
    }
    return answers;
  }

  override async downloadFiles(paths: string[]): Promise<FileDownloadResponse[]> {
    const sandbox = this.sandbox;
    const answers: FileDownloadResponse[] = [];
    for (const path of paths) {
      try {
        answers.push({ path, content: await sandbox.read(path), error: null });
      } catch (e) {
        answers.push({ path, content: null, error: this.#fileError(e) });
      }
    }
    return answers;
  }

  /** The protocol's word, else what happened in one line: a wrong word would be worse, and whoever reads it
   * only prints it. */
  #fileError(e: unknown): FileOperationError {
    const text = this.#text(e);
    const error: FileError = asFileError(e as DurwardError);
    return LITERALS[error.code] ?? (text as FileOperationError);
  }
}

function executed(r: ExecResult, limit: number): ExecuteResponse {
  let output = r.text;
  for (const more of [r.message, r.timedOut ? `Command timed out after ${limit} seconds` : ""])
    if (more) output += (output && !output.endsWith("\n") ? "\n" : "") + more;
  return { output, exitCode: r.exitCode, truncated: r.truncated };
}
