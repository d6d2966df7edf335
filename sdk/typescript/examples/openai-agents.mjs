// OpenAI's Agents SDK: an agent whose commands and patches are in a sandbox. Its key stays with this process.
//   npm install @openai/agents /path/to/durward-0.1.0.tgz
import { Agent, applyDiff, applyPatchTool, run, shellTool } from "@openai/agents";
import { Durward } from "durward";
import { editor, shell } from "durward/openai-agents";

const box = await new Durward().create({ policy: "coder" });
try {
  const agent = new Agent({
    name: "coder", model: "gpt-5.1",
    tools: [shellTool({ shell: shell(box) }), applyPatchTool({ editor: editor(box, applyDiff) })],
  });
  const result = await run(agent, "Say in which folder you are, and put a greeting into hello.txt.");
  console.log(result.finalOutput);
  console.log(Buffer.from(await box.read("/workspace/hello.txt")).toString("utf8"));
} finally {
  await box.delete();
}
