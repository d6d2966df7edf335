// A deep agent with a scripted model, whose tools work in a sandbox of the daemon at DURWARD_SOCKET. From there it
// asks two origins that want credentials.
import assert from "node:assert/strict";

import { AIMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { createDeepAgent } from "deepagents";
import { DurwardSandbox } from "durward/deepagents";

import { behaviour, runAll } from "./report.mjs";

const ASK_OPENAI = "curl -s -H 'Authorization: Bearer '$OPENAI_API_KEY -H 'Content-Type: application/json' " +
  "-d '{\"model\":\"m\",\"messages\":[]}' https://api.openai.com/v1/chat/completions";
const backend = await DurwardSandbox.create({ policy: "p" });

behaviour("a deep agent writes a file, runs a command and is told its exit code", async () => {
  const file = { file_path: "/workspace/a.txt", content: "hello" };
  const model = fakeModel()
    .respondWithTools([{ name: "write_file", args: file, id: "1" }])
    .respondWithTools([{ name: "execute", args: { command: "cat /workspace/a.txt; exit 3" }, id: "2" }])
    .respondWithTools([{ name: "execute", args: { command: "curl -s https://api.github.com/user" }, id: "3" }])
    .respondWithTools([{ name: "execute", args: { command: ASK_OPENAI }, id: "4" }])
    .respond(new AIMessage("done"));
  const state = await createDeepAgent({ model, backend }).invoke({ messages: [{ role: "user", content: "go" }] });
  const told = state.messages.filter((m) => m.getType() === "tool").map((m) => String(m.content));
  assert.equal(told.length, 4);
  assert.match(told[0], /\/workspace\/a\.txt/);
  assert.match(told[1], /^hello\n?\[Command failed with exit code 3\]/);
  assert.match(told[2], /octo/, "the origin answers with the credential that the agent never had");
  assert.match(told[2], /\[Command succeeded with exit code 0\]/);
  assert.match(told[3], /The door is kept/);
  assert.equal(Buffer.from(await backend.sandbox.read("/workspace/a.txt")).toString(), "hello");
});

try {
  await runAll();
} finally {
  await backend.close();
}
