// Mastra: an agent whose workspace is a sandbox of Durward. The model's key stays with this process.
//   npm install @mastra/core @ai-sdk/openai /path/to/durward-0.1.0.tgz
import { openai } from "@ai-sdk/openai";
import { Agent } from "@mastra/core/agent";
import { Workspace } from "@mastra/core/workspace";
import { Durward } from "durward";
import { DurwardFilesystem, DurwardSandbox } from "durward/mastra";

const box = await new Durward().create({ policy: "coder" });
try {
  const workspace = new Workspace({ sandbox: new DurwardSandbox(box), filesystem: new DurwardFilesystem(box) });
  const agent = new Agent({
    id: "coder", name: "coder", instructions: "You work in a sandbox.", model: openai("gpt-5.1"), workspace,
  });
  const result = await agent.generate("Say in which folder you are, and put a greeting into hello.txt.");
  console.log(result.text);
  console.log(Buffer.from(await box.read("/workspace/hello.txt")).toString("utf8"));
} finally {
  await box.delete();
}
