/** Vercel's AI SDK: what it calls a sandbox session (`experimental_sandbox`), of a sandbox of Durward.
 *
 *   generateText({ model, tools, experimental_sandbox: sandboxSession(box) })
 *
 * Nothing of the SDK is imported: the types are those that it publishes, by their form. */
import { posix } from "node:path";

import { FileError, Unsupported } from "./errors.js";
import type { ExecEvent, ExecResult, FileEntry } from "./models.js";
import type { ExecOptions, Sandbox } from "./sandbox.js";

const OUTPUT_MAX = 8 << 20; // bytes kept of each output of a command
const FILE_MAX = 64 << 20; // of a file, as the API has it

export interface SessionOptions {
  /** Default: the sandbox's workdir. Relative paths begin there. */
  readonly cwd?: string;
  /** Seconds of a command (default 1800; 0: none). */
  readonly timeout?: number;
}

interface CommandArgs {
  readonly command: string;
  readonly workingDirectory?: string;
  readonly env?: Record<string, string>;
  readonly abortSignal?: AbortSignal;
}

interface PathArgs {
  readonly path: string;
  readonly abortSignal?: AbortSignal;
}

interface Written<T> extends PathArgs {
  readonly content: T;
}

/** A command that runs. Each of its outputs ends with it. */
export interface SessionProcess {
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  wait(): Promise<{ exitCode: number }>;
  kill(): Promise<void>;
}

/** With `stdin` it is refused before anything runs: the API has a command's standard input with the command. */
interface Spawn {
  (a: CommandArgs & { readonly stdin: true }): Promise<never>;
  (a: CommandArgs & { readonly stdin?: false }): Promise<SessionProcess>;
  (a: CommandArgs & { readonly stdin?: boolean }): Promise<SessionProcess>;
}

/** null where there is no such file; anything else that goes wrong is thrown. */
async function orNull<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (e) {
    if (e instanceof FileError && e.code === "file_not_found") return null;
    throw e;
  }
}

async function whole(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of stream as unknown as AsyncIterable<Uint8Array>) {
    if ((size += piece.length) > FILE_MAX) throw new FileError("a file is 64 MiB at most: use smaller pieces", "too_large");
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function process(events: AsyncGenerator<ExecEvent, void>, abort: AbortController): SessionProcess {
  const sinks: Record<"stdout" | "stderr", ReadableStreamDefaultController<Uint8Array> | null> = { stdout: null, stderr: null };
  const of = (name: "stdout" | "stderr") => new ReadableStream<Uint8Array>({
    start: (c) => void (sinks[name] = c), cancel: () => void (sinks[name] = null),
  });
  const stdout = of("stdout"), stderr = of("stderr");
  const ended = (async (): Promise<{ exitCode: number }> => {
    try {
      for await (const e of events) {
        if (e.type === "exit") {
          for (const sink of Object.values(sinks)) sink?.close();
          return { exitCode: e.exitCode };
        }
        sinks[e.type === "stderr" ? "stderr" : "stdout"]?.enqueue(e.data);
      }
      throw new Unsupported("the command's stream had no end", "stream_ended");
    } catch (e) {
      for (const sink of Object.values(sinks)) sink?.error(e);
      throw e;
    }
  })();
  ended.catch(() => undefined); // whoever waits hears it
  return {
    stdout, stderr, wait: () => ended,
    kill: async () => {
      abort.abort(new DOMException("the command was killed", "AbortError"));
      await ended.catch(() => undefined);
    },
  };
}

/** What generateText, streamText and agents take as `experimental_sandbox`. */
export function sandboxSession(box: Sandbox, o: SessionOptions = {}) {
  const base = o.cwd ?? box.info.workdir;
  const at = (path: string): string => posix.resolve(base, path);
  const options = (a: CommandArgs): ExecOptions => ({
    cwd: at(a.workingDirectory ?? "."), split: true, ...(o.timeout === undefined ? {} : { timeout: o.timeout }),
    ...(a.env === undefined ? {} : { env: a.env }),
  });
  const read = async (a: PathArgs): Promise<Uint8Array | null> => {
    a.abortSignal?.throwIfAborted();
    return orNull(box.read(at(a.path)));
  };
  const write = async (a: Written<Uint8Array | string>): Promise<void> => {
    a.abortSignal?.throwIfAborted();
    await box.write(at(a.path), a.content);
  };
  /** What a link leads to, as `stat` of a shell has it. */
  const look = async (path: string): Promise<FileEntry | null> => {
    const e = await orNull(box.stat(path));
    if (e?.type !== "symlink") return e;
    const r = await box.exec(["readlink", "-e", "--", path], { split: true });
    return r.exitCode === 0 ? orNull(box.stat(r.text.replace(/\n$/, ""))) : null;
  };
  return {
    description: `A sandbox with a shell. Commands start in ${base}. Network requests leave it only where its policy allows them.`,

    async run(a: CommandArgs): Promise<{ exitCode: number; stdout: string; stderr: string }> {
      const r: ExecResult = await box.exec(a.command, {
        ...options(a), maxOutput: OUTPUT_MAX, ...(a.abortSignal === undefined ? {} : { signal: a.abortSignal }),
      });
      const more = (r.truncated ? "\n[output was cut at 8 MiB]" : "") + (r.timedOut ? "\n[killed: it took too long]" : "");
      return { exitCode: r.exitCode, stdout: r.text, stderr: Buffer.from(r.stderr).toString("utf8") + more };
    },

    spawn: (async (a: CommandArgs & { readonly stdin?: boolean }) => {
      if (a.stdin) throw new Unsupported("a command's standard input is given before it runs: use a file, or a pipe in the command", "stdin");
      a.abortSignal?.throwIfAborted();
      const abort = new AbortController();
      const signal = a.abortSignal === undefined ? abort.signal : AbortSignal.any([a.abortSignal, abort.signal]);
      return process(box.stream(a.command, { ...options(a), signal }), abort);
    }) as Spawn,

    async readFile(a: PathArgs): Promise<ReadableStream<Uint8Array> | null> {
      const data = await read(a);
      return data && new ReadableStream<Uint8Array>({ start: (c) => (c.enqueue(data), c.close()) });
    },
    readBinaryFile: read,
    async readTextFile(a: PathArgs & { readonly encoding?: string; readonly startLine?: number; readonly endLine?: number }): Promise<string | null> {
      const data = await read(a);
      if (data === null) return null;
      const text = new TextDecoder(a.encoding ?? "utf-8").decode(data);
      return a.startLine === undefined && a.endLine === undefined
        ? text : text.split("\n").slice((a.startLine ?? 1) - 1, a.endLine).join("\n");
    },
    writeFile: async (a: Written<ReadableStream<Uint8Array>>): Promise<void> => write({ ...a, content: await whole(a.content) }),
    writeBinaryFile: (a: Written<Uint8Array>): Promise<void> => write(a),
    writeTextFile: (a: Written<string> & { readonly encoding?: string }): Promise<void> =>
      write({ ...a, content: Buffer.from(a.content, (a.encoding ?? "utf-8") as BufferEncoding) }),

    async stat(a: PathArgs): Promise<{ type: "file" | "directory" | "other"; size: number } | null> {
      a.abortSignal?.throwIfAborted();
      const e = await look(at(a.path));
      return e && { type: e.type === "symlink" ? "other" : e.type, size: e.size };
    },
    async listDirectory(a: PathArgs): Promise<{ name: string; type: FileEntry["type"] }[] | null> {
      a.abortSignal?.throwIfAborted();
      const entries = await orNull(box.listFiles(at(a.path)));
      return entries && entries.map(({ name, type }) => ({ name, type }));
    },
    async deleteFile(a: PathArgs): Promise<boolean> {
      a.abortSignal?.throwIfAborted();
      const path = at(a.path), e = await orNull(box.stat(path));
      if (e?.type === "directory") throw new FileError(`${path} is a directory`, "is_directory");
      return e !== null && (await orNull(box.remove(path).then(() => true))) === true;
    },
  };
}
