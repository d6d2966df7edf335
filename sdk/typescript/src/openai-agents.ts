/** OpenAI's Agents SDK for TypeScript: what its shellTool and applyPatchTool run, in a sandbox.
 *
 *   shellTool({ shell: shell(box) }), applyPatchTool({ editor: editor(box, applyDiff) })
 *
 * Nothing of the SDK is imported: its applyDiff comes from the caller, and the types are those that it publishes, by
 * their form. */
import { posix } from "node:path";

import { DurwardError } from "./errors.js";
import type { Sandbox } from "./sandbox.js";

/** Bytes kept of each command's output. */
const OUTPUT_MAX = 1 << 20;

export interface ShellAction {
  commands: string[];
  timeoutMs?: number | undefined;
  maxOutputLength?: number | undefined;
}

/** A type, since an interface does not fit where the SDK takes more members. */
export type ShellOutput = {
  stdout: string;
  stderr: string;
  outcome: { type: "timeout" } | { type: "exit"; exitCode: number | null };
};

export interface ShellOptions {
  /** Default: the sandbox's workdir. */
  readonly cwd?: string;
  /** Seconds of a command for which the model asks none, or more (default 600). */
  readonly timeout?: number;
}

async function one(box: Sandbox, command: string, timeout: number, cwd?: string): Promise<ShellOutput> {
  try {
    const r = await box.exec(command, { timeout, split: true, maxOutput: OUTPUT_MAX, ...(cwd === undefined ? {} : { cwd }) });
    const more = r.truncated ? "\n[output was cut at 1 MiB]" : "";
    return {
      stdout: r.text, stderr: Buffer.from(r.stderr).toString("utf8") + more,
      outcome: r.timedOut ? { type: "timeout" } : { type: "exit", exitCode: r.exitCode },
    };
  } catch (e) {
    if (!(e instanceof DurwardError)) throw e;
    return { stdout: "", stderr: e.message, outcome: { type: "exit", exitCode: 1 } }; // for the model: what to do stands in it
  }
}

/** The shell of a shellTool: each command of an action, in order. */
export function shell(box: Sandbox, o: ShellOptions = {}) {
  const most = o.timeout ?? 600;
  return {
    async run(action: ShellAction): Promise<{ output: ShellOutput[]; maxOutputLength?: number }> {
      const asked = action.timeoutMs ? Math.max(1, Math.ceil(action.timeoutMs / 1000)) : most;
      const output: ShellOutput[] = [];
      for (const command of action.commands) output.push(await one(box, command, Math.min(asked, most), o.cwd));
      return action.maxOutputLength === undefined ? { output } : { output, maxOutputLength: action.maxOutputLength };
    },
  };
}

export type ApplyDiff = (input: string, diff: string, mode?: "default" | "create") => string;

export interface PatchResult {
  status: "completed" | "failed";
  output?: string;
}

/** A patch that does not fit, and what the API refuses, is an answer for the model. */
async function tried(work: () => Promise<void>): Promise<PatchResult> {
  try {
    await work();
    return { status: "completed" };
  } catch (e) {
    return { status: "failed", output: e instanceof Error ? e.message : String(e) };
  }
}

/** The editor of an applyPatchTool: files of a sandbox. Relative paths are below `root`, absolute ones as they are; the
 * sandbox is what bounds them. An update replaces only the version that was read. */
export function editor(box: Sandbox, applyDiff: ApplyDiff, root = "/workspace") {
  const at = (path: string): string => posix.resolve(root, path);
  return {
    createFile: (o: { path: string; diff: string }): Promise<PatchResult> =>
      tried(() => box.write(at(o.path), applyDiff("", o.diff, "create"), undefined, { ifVersion: "none" })),
    updateFile: (o: { path: string; diff: string; moveTo?: string | undefined }): Promise<PatchResult> =>
      tried(async () => {
        const path = at(o.path), to = at(o.moveTo ?? o.path);
        const { version } = await box.stat(path);
        if (version === undefined || version === null) throw new Error(`${path} is no file`);
        const text = applyDiff(Buffer.from(await box.read(path)).toString("utf8"), o.diff);
        await box.write(to, text, undefined, { ifVersion: to === path ? version : "none" });
        if (to !== path) await box.remove(path, { ifVersion: version });
      }),
    deleteFile: (o: { path: string }): Promise<PatchResult> => tried(() => box.remove(at(o.path))),
  };
}
