/** Durward's sandboxes as backends of Deep Agents. */
export { DurwardSandbox, type DurwardSandboxOptions, type InitialFiles } from "./backend.js";
export { assistantSandbox, threadSandbox, type ScopedOptions } from "./scoped.js";
