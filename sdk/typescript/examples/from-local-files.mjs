// A session of a deep agent begins with files of this machine (deepagents' FilesystemBackend, which has no commands) and
// goes on in a sandbox: its files are carried over, and what was said stays in the thread's checkpoints. Any backend that
// has glob() and downloadFiles() can be moved from, Node VFS's VfsBackend for one.
//   npm install deepagents @langchain/openai @langchain/langgraph-checkpoint /path/to/durward-0.1.0.tgz
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { MemorySaver } from "@langchain/langgraph-checkpoint";
import { createDeepAgent, FilesystemBackend } from "deepagents";
import { DurwardSandbox } from "durward/deepagents";

const HOME = "/workspace/";
const checkpointer = new MemorySaver();
const thread = { configurable: { thread_id: "42" } };

async function ask(backend, content) {
  const agent = createDeepAgent({ model: "openai:gpt-5", backend, checkpointer });
  return (await agent.invoke({ messages: [{ role: "user", content }] }, thread)).messages;
}

/** [path below the backend's root, bytes] of each file. */
async function filesOf(backend) {
  const { files = [], error } = await backend.glob("**/*", "/");
  if (error) throw new Error(error);
  const paths = files.filter((f) => !f.is_dir).map((f) => f.path);
  return (await backend.downloadFiles(paths)).map((f) => {
    if (f.error) throw new Error(`${f.path}: ${f.error}`);
    return [f.path.replace(/^\/+/, ""), f.content];
  });
}

const folder = mkdtempSync(join(tmpdir(), "session-"));
const box = await DurwardSandbox.create({ policy: "coder" });
try {
  mkdirSync(join(folder, "src"));
  writeFileSync(join(folder, "src/door.txt"), "shut\n");
  const here = new FilesystemBackend({ rootDir: folder, virtualMode: true });
  await ask(here, "Make notes.md, with what I should remember.");

  const files = await filesOf(here);
  console.log("before:", files.map(([path]) => path).sort().join(" "));
  for (const r of await box.uploadFiles(files.map(([path, bytes]) => [HOME + path, bytes])))
    if (r.error) throw new Error(`${r.path}: ${r.error}`);

  const said = await ask(box, "Say in which folder you are, and run what needs a shell.");
  console.log("after:", JSON.stringify(said.at(-1).content));
  console.log("questions in the thread:", said.filter((m) => m.getType() === "human").length);
  for (const f of await box.downloadFiles([HOME + "notes.md", HOME + "src/door.txt"]))
    console.log("kept:", Buffer.from(f.content).toString("utf8").trim());
} finally {
  await box.close();
  rmSync(folder, { recursive: true });
}
