// Vercel's AI SDK: a tool whose commands run in a sandbox. The model's key stays with this process.
//   npm install ai @ai-sdk/openai zod /path/to/durward-0.1.0.tgz
import { openai } from "@ai-sdk/openai";
import { generateText, stepCountIs, tool } from "ai";
import { Durward } from "durward";
import { z } from "zod";

const box = await new Durward().create({ policy: "coder" });
try {
  const sh = tool({
    description: "Runs a command of /bin/sh in a sandbox.",
    inputSchema: z.object({ command: z.string() }),
    execute: async ({ command }, { abortSignal }) => {
      const r = await box.exec(command, { timeout: 600, maxOutput: 1 << 20, signal: abortSignal });
      return { exitCode: r.exitCode, output: r.text, timedOut: r.timedOut };
    },
  });
  const result = await generateText({
    model: openai("gpt-5.1"), tools: { sh }, stopWhen: stepCountIs(5),
    prompt: "Say in which folder you are, and put a greeting into hello.txt.",
  });
  console.log(result.text);
  console.log(Buffer.from(await box.read("/workspace/hello.txt")).toString("utf8"));
} finally {
  await box.delete();
}
