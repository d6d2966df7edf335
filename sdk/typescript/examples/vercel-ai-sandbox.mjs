// Vercel's AI SDK: tools that get a sandbox session of Durward. The model's key stays with this process.
//   npm install ai @ai-sdk/openai zod /path/to/durward-0.1.0.tgz
import { openai } from "@ai-sdk/openai";
import { generateText, stepCountIs, tool } from "ai";
import { Durward } from "durward";
import { sandboxSession } from "durward/ai-sdk";
import { z } from "zod";

const box = await new Durward().create({ policy: "coder" });
try {
  const sh = tool({
    description: "Runs a command of /bin/sh in a sandbox.",
    inputSchema: z.object({ command: z.string() }),
    execute: ({ command }, { experimental_sandbox: sandbox, abortSignal }) => sandbox.run({ command, abortSignal }),
  });
  const result = await generateText({
    model: openai("gpt-5.1"), tools: { sh }, stopWhen: stepCountIs(5), experimental_sandbox: sandboxSession(box),
    prompt: "Say in which folder you are, and put a greeting into hello.txt.",
  });
  console.log(result.text);
  console.log(Buffer.from(await box.read("/workspace/hello.txt")).toString("utf8"));
} finally {
  await box.delete();
}
