// LangChain's own standard tests, whose sources were copied beside this file, under vitest.
import { DurwardSandbox } from "durward/deepagents";

import { sandboxStandardTests } from "./upstream/src/vitest.ts";

sandboxStandardTests({
  name: "DurwardSandbox",
  createSandbox: (options) => DurwardSandbox.create({ policy: "p", ...options }),
  createUninitializedSandbox: () => new DurwardSandbox({ policy: "p" }),
  closeSandbox: (sandbox) => sandbox.close(),
  resolvePath: (name) => "/workspace/" + name,
});
