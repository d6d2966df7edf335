/** One sandbox a conversation, or one an assistant: found by its label, made when there is none. */
import { DurwardSandbox, type DurwardSandboxOptions } from "./backend.js";

export type ScopedOptions = Omit<DurwardSandboxOptions, "initialFiles" | "labels" | "name">;

function scoped(key: string, value: string, options: ScopedOptions): Promise<DurwardSandbox> {
  if (!value) return Promise.reject(new TypeError(`${key} is empty`));
  return DurwardSandbox.getOrCreate({ ...options, labels: { [key]: value } });
}

/** The sandbox of this conversation. Two that ask at once get the same one. */
export function threadSandbox(threadId: string, options: ScopedOptions = {}): Promise<DurwardSandbox> {
  return scoped("thread_id", threadId, options);
}

/** The sandbox that all conversations of an assistant share; files stay from one to the next, until its time to
 * live ends. */
export function assistantSandbox(assistantId: string, options: ScopedOptions = {}): Promise<DurwardSandbox> {
  return scoped("assistant_id", assistantId, options);
}
