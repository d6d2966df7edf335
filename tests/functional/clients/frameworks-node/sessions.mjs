// What frameworks' tools ask of durward/openai-sandbox, /ai-sdk and /mastra, asked directly: each thing is a line of JSON.
import { applyDiff } from "@openai/agents";
import { Manifest } from "@openai/agents/sandbox";
import { Workspace } from "@mastra/core/workspace";
import { Durward, FileError, NotFound, Unsupported } from "durward";
import { sandboxSession } from "durward/ai-sdk";
import { DurwardFilesystem, DurwardSandbox } from "durward/mastra";
import { DurwardSandboxClient } from "durward/openai-sandbox";

const tell = (what, ok, ...more) => console.log(JSON.stringify({ what, ok: Boolean(ok), more: more.map(String) }));
const raised = async (work) => work.then(() => null, (e) => e);
const utf8 = async (stream) => Buffer.concat(await Array.fromAsync(stream)).toString("utf8");
const until = async (box, condition) => {
  for (let i = 0; i < 100; i++) {
    if ((await box.exec(condition)).exitCode === 0) return true;
    await new Promise((done) => setTimeout(done, 100));
  }
  return false;
};
Array.fromAsync ??= async (stream) => {
  const all = [];
  for await (const x of stream) all.push(x);
  return all;
};

async function openai(durward) {
  const client = new DurwardSandboxClient({ applyDiff, Manifest, client: durward });
  const manifest = new Manifest({
    environment: { COLOUR: "blue" },
    entries: { a: { type: "dir", children: { "b.txt": { type: "file", content: "b" } } }, own: { type: "local_file", src: "package.json" } },
  });
  const session = await client.create({ manifest, options: { policy: "coder", keep: true } });
  const r = await session.exec({ cmd: "cat a/b.txt; echo $COLOUR; grep -c app own; echo err >&2; exit 3" });
  tell("OpenAI's manifest is laid out; outputs apart; an exit status", r.stdout === "bblue\n1\n" && r.stderr === "err\n" && r.exitCode === 3, JSON.stringify(r));
  tell("no file of this host from outside the program's directory", (await raised(session.materializeEntry({ path: "p", entry: { type: "local_file", src: "/etc/passwd" } })))?.code === "manifest");
  tell("a terminal, another user and a mount are refused, not ignored", (await raised(session.exec({ cmd: "true", tty: true }))) instanceof Unsupported &&
       (await raised(session.readFile({ path: "own", runAs: "root" }))) instanceof Unsupported);
  const state = await client.deserializeSessionState(JSON.parse(JSON.stringify(await client.serializeSessionState(session.state))));
  const archive = await session.persistWorkspace();
  await session.close();
  const again = await client.resume(state);
  tell("a kept one is found again, with its files", Buffer.from(await again.readFile({ path: "a/b.txt" })).toString() === "b" && again.state.sandboxId === session.state.sandboxId);
  const other = await client.create({ options: { policy: "coder" } });
  await other.hydrateWorkspace(archive);
  tell("a workspace goes over as an archive", (await other.pathExists("a/b.txt")) && (await other.directoryExists("a")) && !(await other.pathExists("none")));
  await other.close();
  await client.delete(again.state);
  tell("and of one that is gone resume says so", (await raised(client.resume(state))) instanceof NotFound);
}

async function vercel(box) {
  const s = sandboxSession(box);
  await s.writeTextFile({ path: "v/a.txt", content: "1\n2\n3\n" });
  await s.writeFile({ path: "v/b.bin", content: new Blob([new Uint8Array([0, 255])]).stream() });
  tell("Vercel's session: texts by line, bytes", (await s.readTextFile({ path: "v/a.txt", startLine: 2, endLine: 2 })) === "2" &&
       Buffer.from(await s.readBinaryFile({ path: "v/b.bin" })).toString("hex") === "00ff");
  tell("what is not there is null", [await s.readFile({ path: "none" }), await s.stat({ path: "none" }), await s.listDirectory({ path: "none" })].every((x) => x === null) &&
       !(await s.deleteFile({ path: "none" })));
  await box.exec("ln -s a.txt v/link; ln -s none v/loose");
  tell("links: followed by stat, listed and deleted as links", (await s.stat({ path: "v/link" })).type === "file" && (await s.stat({ path: "v/loose" })) === null &&
       (await s.listDirectory({ path: "v" })).find((e) => e.name === "link").type === "symlink" && (await s.deleteFile({ path: "v/link" })) && (await s.stat({ path: "v/a.txt" })).size === 6);
  tell("a directory is no file", (await raised(s.deleteFile({ path: "v" }))) instanceof FileError);
  const p = await s.spawn({ command: "echo out; echo err >&2; exit 4" });
  tell("spawn: outputs apart, and its exit", (await utf8(p.stdout)) === "out\n" && (await utf8(p.stderr)) === "err\n" && (await p.wait()).exitCode === 4);
  const long = await s.spawn({ command: "sleep 3334" });
  await until(box, "pgrep -f 'sleep 333[4]'");
  await long.kill();
  tell("kill kills", (await until(box, "! pgrep -f 'sleep 333[4]'")) && (await raised(long.wait())) !== null);
  const abort = new AbortController(), run = raised(s.run({ command: "sleep 3335", abortSignal: abort.signal }));
  await until(box, "pgrep -f 'sleep 333[5]'");
  abort.abort();
  tell("and so does a signal", (await run)?.name === "AbortError" && (await until(box, "! pgrep -f 'sleep 333[5]'")));
  tell("standard input later is refused before anything runs", (await raised(s.spawn({ command: "cat", stdin: true }))) instanceof Unsupported);
}

async function mastra(box) {
  const sandbox = new DurwardSandbox(box), f = new DurwardFilesystem(box), heard = [];
  const workspace = new Workspace({ sandbox, filesystem: f });
  await workspace.init();
  const r = await sandbox.executeCommand("sh", ["-c", "echo \"$0\"; echo err >&2; exit 5", "it's $HOME"], { onStdout: (x) => heard.push(x) });
  tell("Mastra's sandbox: words as they are, outputs as they come", r.stdout === "it's $HOME\n" && r.stderr === "err\n" && r.exitCode === 5 && !r.success && heard.join("") === r.stdout, JSON.stringify(r));
  const late = await sandbox.executeCommand("sleep 30", [], { timeout: 900 });
  tell("a command that takes too long", late.timedOut && late.exitCode === 124);
  const cut = await sandbox.executeCommand("head -c 5000 /dev/zero | tr '\\0' x", [], { maxRetainedBytes: 1000 });
  tell("its last bytes are kept", cut.stdout.length === 1000 && cut.stdoutTruncated && cut.stdoutDroppedBytes === 4000);
  await f.writeFile("m/a.txt", "one", { recursive: true });
  await f.appendFile("m/a.txt", " two");
  await f.copyFile("m/a.txt", "m/b.txt");
  await f.moveFile("m/b.txt", "m/c.ts");
  tell("its files", (await f.readFile("m/a.txt", { encoding: "utf8" })) === "one two" && (await f.exists("m/c.ts")) && !(await f.exists("m/b.txt")) &&
       (await f.readdir("m", { extension: ".ts" })).map((e) => e.name).join() === "c.ts" && (await f.stat("m")).type === "directory");
  tell("nothing is written over what has changed, or that may not be", (await raised(f.writeFile("m/a.txt", "x", { overwrite: false })))?.code === "changed" &&
       (await raised(f.writeFile("m/a.txt", "x", { expectedMtime: new Date(0) })))?.code === "changed" &&
       (await raised(new DurwardFilesystem(box, { readOnly: true }).writeFile("m/a.txt", "x"))) instanceof Unsupported);
  await f.deleteFile("m/none", { force: true });
  await f.rmdir("m", { recursive: true });
  tell("deleted", !(await f.exists("m")) && (await raised(f.deleteFile("m")))?.code === "file_not_found");
  await workspace.destroy();
  tell("the sandbox stays its owner's", (await box.refresh()).state === "running");
}

const durward = new Durward();
await openai(durward);
const box = await durward.create({ policy: "coder" });
await vercel(box);
await mastra(box);
await box.delete();
