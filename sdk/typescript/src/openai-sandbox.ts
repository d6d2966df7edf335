/** OpenAI's Agents SDK for TypeScript: a client of sandboxes whose sessions are sandboxes of Durward.
 *
 *   const client = new DurwardSandboxClient({ applyDiff, Manifest });
 *   await run(new SandboxAgent({ ... }), "...", { sandbox: { client, options: { policy: "coder" } } });
 *
 * Nothing of the SDK is imported: its applyDiff and its Manifest come from the caller, and the types are those that it
 * publishes, by their form. A terminal is not offered, and mounts and users of a manifest are refused. */
import { promises as fs } from "node:fs";
import { posix, resolve, sep } from "node:path";

import { Durward } from "./client.js";
import { BadRequest, Conflict, DurwardError, FileError, NotFound, Unsupported } from "./errors.js";
import { editor, type ApplyDiff } from "./openai-agents.js";
import type { Sandbox } from "./sandbox.js";

const OUTPUT_MAX = 8 << 20; // bytes kept of each output of a command
const IMAGE_MAX = 10 << 20;
const IMAGES: ReadonlyArray<readonly [string, string]> = [
  ["89504e470d0a1a0a", "image/png"], ["ffd8ff", "image/jpeg"], ["47494638", "image/gif"], ["52494646", "image/webp"],
];

/** What the sandbox of a run is. A type, since the SDK wants members of any name. */
export type DurwardSandboxOptions = {
  policy?: string;
  template?: string;
  image?: string;
  env?: Record<string, string>;
  labels?: Record<string, string>;
  volumes?: string[];
  /** Of its loopback, published on this host. */
  exposedPorts?: number[];
  ttl?: number;
  idleTtl?: number;
  /** Seconds of a command (default 1800). */
  timeout?: number;
  /** At the session's end it is stopped and its files stay, so that resume finds it; else it is deleted. */
  keep?: boolean;
};

/** What we use of the SDK's Manifest. */
export interface ManifestForm {
  readonly root: string;
  readonly entries: Readonly<Record<string, EntryForm>>;
  readonly users: readonly unknown[];
  readonly groups: readonly unknown[];
  mountTargets(): readonly unknown[];
  resolveEnvironment(): Promise<Record<string, string>>;
}

export interface EntryForm {
  readonly type: string;
}

export type DurwardSandboxState<M extends ManifestForm> = {
  manifest: M;
  sandboxId: string;
  options: DurwardSandboxOptions;
  environment?: Record<string, string>;
  workspaceReady?: boolean;
};

interface ExecArgs {
  cmd: string;
  workdir?: string;
  shell?: string;
  login?: boolean;
  tty?: boolean;
  maxOutputTokens?: number;
  runAs?: string;
}

function nobody(runAs: string | undefined): void {
  if (runAs !== undefined) throw new Unsupported("commands and files are the sandbox's own user's: leave runAs out", "run_as");
}

export class DurwardSandboxSession<M extends ManifestForm> {
  #ended = false;

  constructor(readonly state: DurwardSandboxState<M>, readonly box: Sandbox, private readonly applyDiff: ApplyDiff) {}

  #at(path: string): string {
    return posix.resolve(this.state.manifest.root, path);
  }

  async running(): Promise<boolean> {
    return !this.#ended && (await this.box.refresh()).state === "running";
  }

  createEditor(runAs?: string) {
    nobody(runAs);
    return editor(this.box, this.applyDiff, this.state.manifest.root);
  }

  supportsPty(): boolean {
    return false;
  }

  async exec(a: ExecArgs) {
    nobody(a.runAs);
    if (a.tty) throw new Unsupported("no terminal is offered here: leave tty out", "tty");
    const began = Date.now();
    const r = await this.box.exec([a.shell ?? "/bin/sh", a.login === false ? "-c" : "-lc", a.cmd], {
      cwd: this.#at(a.workdir ?? "."), env: this.state.environment ?? {}, timeout: this.state.options.timeout ?? 1800, split: true,
      maxOutput: OUTPUT_MAX,
    });
    const stderr = Buffer.from(r.stderr).toString("utf8") + (r.timedOut ? "\n[killed: it took too long]" : "");
    const whole = r.text + stderr;
    const most = a.maxOutputTokens === undefined ? Infinity : a.maxOutputTokens * 4; // a token is some four characters
    return {
      output: whole.length > most ? `${whole.slice(0, most / 2)}\n[...]\n${whole.slice(-most / 2)}` : whole,
      stdout: r.text, stderr, exitCode: r.exitCode, wallTimeSeconds: (Date.now() - began) / 1000,
    };
  }

  async execCommand(a: ExecArgs): Promise<string> {
    const r = await this.exec(a);
    return `Wall time: ${r.wallTimeSeconds.toFixed(4)} seconds\nProcess exited with code ${r.exitCode}\nOutput:\n${r.output}`;
  }

  async readFile(a: { path: string; runAs?: string; maxBytes?: number }): Promise<Uint8Array> {
    nobody(a.runAs);
    const whole = await this.box.read(this.#at(a.path));
    return a.maxBytes === undefined ? whole : whole.subarray(0, a.maxBytes);
  }

  async viewImage(a: { path: string; runAs?: string }) {
    const data = await this.readFile(a);
    const head = Buffer.from(data.subarray(0, 8)).toString("hex");
    const kind = IMAGES.find(([magic]) => head.startsWith(magic));
    if (data.length > IMAGE_MAX) throw new BadRequest(`Image file exceeds the 10 MB limit: ${a.path}`, "too_large");
    if (kind === undefined) throw new BadRequest(`${a.path} is not a supported image file`, "not_an_image");
    return { type: "image" as const, image: { data: new Uint8Array(data), mediaType: kind[1] } };
  }

  async listDir(a: { path: string; runAs?: string }) {
    nobody(a.runAs);
    const kinds = { file: "file", directory: "dir" } as const;
    return (await this.box.listFiles(this.#at(a.path))).map((e) => ({
      name: e.name, path: posix.join(a.path, e.name), type: kinds[e.type as "file" | "directory"] ?? ("other" as const),
    }));
  }

  async pathExists(path: string, runAs?: string): Promise<boolean> {
    nobody(runAs);
    return (await this.#kind(path)) !== null;
  }

  async directoryExists(path: string, runAs?: string): Promise<boolean> {
    nobody(runAs);
    return (await this.box.exec(["test", "-d", this.#at(path)])).exitCode === 0;
  }

  async #kind(path: string): Promise<string | null> {
    try {
      return (await this.box.stat(this.#at(path))).type;
    } catch (e) {
      if (e instanceof FileError && e.code === "file_not_found") return null;
      throw e;
    }
  }

  async materializeEntry(a: { path: string; entry: EntryForm; runAs?: string }): Promise<void> {
    nobody(a.runAs);
    await this.#lay(this.#at(a.path), a.entry);
  }

  async applyManifest(manifest: M, runAs?: string): Promise<void> {
    nobody(runAs);
    if (manifest.users.length + manifest.groups.length + manifest.mountTargets().length > 0)
      throw new Unsupported("users, groups and mounts of a manifest are not offered: the policy's image and volumes are for that", "manifest");
    const made = await this.box.exec(["mkdir", "-p", "--", manifest.root], { cwd: "/" });
    if (made.exitCode !== 0) throw new DurwardError(`${manifest.root} cannot be made: ${made.text}`, "manifest");
    this.state.environment = { ...this.state.environment, ...(await manifest.resolveEnvironment()) };
    for (const [path, entry] of Object.entries(manifest.entries)) await this.#lay(this.#at(path), entry);
  }

  async #lay(path: string, entry: EntryForm): Promise<void> {
    const e = entry as { type: string; content: string | Uint8Array; children?: Record<string, EntryForm>; src: string };
    if (e.type === "file") {
      await this.box.write(path, e.content);
    } else if (e.type === "dir") {
      await this.#folder(path);
      for (const [name, child] of Object.entries(e.children ?? {})) await this.#lay(posix.join(path, name), child);
    } else if (e.type === "local_file" || e.type === "local_dir") {
      await this.#bring(await here(e.src), path);
    } else {
      throw new Unsupported(`an entry of type ${e.type} is not offered: bring it by a command, or by a volume of the policy`, "manifest");
    }
  }

  async #folder(path: string): Promise<void> {
    const r = await this.box.exec(["mkdir", "-p", "--", path], { cwd: "/" });
    if (r.exitCode !== 0) throw new DurwardError(`${path} cannot be made: ${r.text}`, "manifest");
  }

  /** Of this host: files and directories; links stay behind. */
  async #bring(from: string, to: string): Promise<void> {
    const s = await fs.lstat(from);
    if (s.isFile()) return this.box.write(to, await fs.readFile(from));
    if (!s.isDirectory()) return;
    await this.#folder(to);
    for (const name of await fs.readdir(from)) await this.#bring(resolve(from, name), posix.join(to, name));
  }

  persistWorkspace(): Promise<Uint8Array> {
    return this.box.readTar(this.state.manifest.root);
  }

  async hydrateWorkspace(data: string | ArrayBuffer | Uint8Array): Promise<void> {
    const bytes = typeof data === "string" ? Buffer.from(data, "base64") : data instanceof Uint8Array ? data : new Uint8Array(data);
    await this.box.writeTar(this.state.manifest.root, bytes);
  }

  async resolveExposedPort(port: number) {
    const p = (await this.box.refresh()).published.find((x) => x.port === port);
    if (p === undefined) throw new BadRequest(`port ${port} is not published: name it in exposedPorts`, "not_published");
    const colon = p.address.lastIndexOf(":");
    return { host: p.address.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number(p.address.slice(colon + 1)), tls: false };
  }

  /** Ends the session: once, whoever asks first. */
  async close(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await ended(this.box, this.state.options.keep === true);
  }

  shutdown(): Promise<void> {
    return this.close();
  }

  delete(): Promise<void> {
    return this.close();
  }
}

async function ended(box: Sandbox, keep: boolean): Promise<void> {
  try {
    await (keep ? box.stop() : box.delete());
  } catch (e) {
    if (!(e instanceof NotFound || e instanceof Conflict)) throw e; // it ended before
  }
}

/** A path of this host below the directory that the program runs in, by what it is rather than by its text. */
async function here(src: string): Promise<string> {
  const root = await fs.realpath("."), at = await fs.realpath(resolve(src));
  if (at !== root && !at.startsWith(root + sep)) throw new BadRequest(`${src} is not below this program's directory`, "manifest");
  return at;
}

export interface DurwardSandboxClientInit<M extends ManifestForm> {
  readonly applyDiff: ApplyDiff;
  /** The SDK's class. */
  readonly Manifest: new (init?: never) => M;
  readonly client?: Durward;
}

interface CreateArgs<M> {
  readonly manifest?: unknown;
  readonly options?: DurwardSandboxOptions;
  readonly snapshot?: unknown;
  readonly M?: M;
}

/** The SDK's SandboxClient. */
export class DurwardSandboxClient<M extends ManifestForm> {
  readonly backendId = "durward";
  readonly supportsDefaultOptions = true;
  readonly #with: DurwardSandboxClientInit<M>;
  readonly #client: Durward;

  constructor(init: DurwardSandboxClientInit<M>) {
    this.#with = init;
    this.#client = init.client ?? new Durward();
  }

  async create(first?: CreateArgs<M> | M, second?: DurwardSandboxOptions): Promise<DurwardSandboxSession<M>> {
    const M = this.#with.Manifest;
    const args: CreateArgs<M> = first instanceof M ? { manifest: first, ...(second ? { options: second } : {}) } : ((first ?? {}) as CreateArgs<M>);
    const manifest = args.manifest instanceof M ? args.manifest : new M((args.manifest ?? {}) as never);
    const options = args.options ?? {};
    const box = await this.#box(options);
    const session = new DurwardSandboxSession<M>({ manifest, sandboxId: box.id, options }, box, this.#with.applyDiff);
    try {
      await session.applyManifest(manifest);
    } catch (e) {
      await box.delete();
      throw e;
    }
    session.state.workspaceReady = true;
    return session;
  }

  #box(o: DurwardSandboxOptions): Promise<Sandbox> {
    const { exposedPorts, timeout, keep, ...more } = o;
    return this.#client.create({
      ...more, labels: { "made-by": "openai-agents", ...o.labels }, ...(exposedPorts === undefined ? {} : { publish: exposedPorts }),
    });
  }

  async delete(state: DurwardSandboxState<M>): Promise<void> {
    await this.#client.delete(state.sandboxId);
  }

  async serializeSessionState(state: DurwardSandboxState<M>): Promise<Record<string, unknown>> {
    return { sandboxId: state.sandboxId, options: state.options, environment: state.environment ?? {} };
  }

  /** An owned session outlives its run only where its sandbox does. */
  canPersistOwnedSessionState(state: DurwardSandboxState<M>): boolean {
    return state.options.keep === true;
  }

  async deserializeSessionState(s: Record<string, unknown>): Promise<DurwardSandboxState<M>> {
    const { sandboxId, options, environment, manifest } = s as Partial<DurwardSandboxState<M>>;
    if (typeof sandboxId !== "string") throw new BadRequest("this is not the state of a sandbox of Durward", "state");
    const M = this.#with.Manifest;
    return {
      sandboxId, options: options ?? {}, environment: environment ?? {},
      manifest: manifest instanceof M ? manifest : new M((manifest ?? {}) as never),
    };
  }

  /** The same sandbox, awake. NotFound where it has gone. */
  async resume(state: DurwardSandboxState<M>): Promise<DurwardSandboxSession<M>> {
    const box = await this.#client.get(state.sandboxId);
    if (box.info.state !== "running") await box.resume();
    return new DurwardSandboxSession<M>(state, box, this.#with.applyDiff);
  }
}
