/** Durward's sandboxes as backends of Deep Agents, and any provider's behind Durward's proxy. */
export { DurwardSandbox, type DurwardSandboxOptions, type InitialFiles } from "./backend.js";
export { assistantSandbox, threadSandbox, type ScopedOptions } from "./scoped.js";
export {
  ELSEWHERE, pair, PairedSandbox, PairingError, type PairingOptions, type PairOptions, type Verification,
} from "./pairing.js";
