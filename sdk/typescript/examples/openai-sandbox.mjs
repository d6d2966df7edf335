// OpenAI's Agents SDK: a SandboxAgent whose sandbox is Durward's. Its key stays with this process.
//   npm install @openai/agents /path/to/durward-0.1.0.tgz
import { applyDiff, run } from "@openai/agents";
import { Manifest, SandboxAgent } from "@openai/agents/sandbox";
import { DurwardSandboxClient } from "durward/openai-sandbox";

const agent = new SandboxAgent({ name: "coder", model: "gpt-5.1", instructions: "You work in a sandbox." });
const client = new DurwardSandboxClient({ applyDiff, Manifest });
const result = await run(agent, "Say in which folder you are, and put a greeting into hello.txt.", {
  sandbox: { client, options: { policy: "coder" } },
});
console.log(result.finalOutput);
