// Type-checked, not run: what a user of the package writes.
import { createDeepAgent } from "deepagents";
import { createReadStream, createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";

import { Durward, NotFound, type ExecEvent, type Sandbox, type Snapshot, type Verification } from "durward";
import { DurwardSandbox, threadSandbox } from "durward/deepagents";

export async function agentOf(thread: string) {
  const backend: DurwardSandbox = await threadSandbox(thread, { policy: "coder", idleTtl: 600 });
  return createDeepAgent({ backend });
}

export async function pieces(id: string): Promise<ExecEvent[]> {
  const box: Sandbox = await new Durward().get(id);
  const seen: ExecEvent[] = [];
  for await (const piece of box.stream("make", { cwd: "/workspace", split: true })) {
    if (piece.type === "exit") console.log(piece.exitCode);
    else process.stdout.write(piece.data);
    seen.push(piece);
  }
  return seen;
}

export async function whole(d: Durward): Promise<string> {
  const found: Verification = await d.verifyLog();
  return found.ok ? `${found.records} records in ${found.files} files` : `${found.problem?.file}: ${found.problem?.why}`;
}

export async function moved(from: Durward, to: Durward): Promise<Snapshot> {
  await pipeline(from.exportSnapshot("s"), createWriteStream("s.tar"));
  await to.importSnapshot("s", createReadStream("s.tar"));
  const box = await to.create({ snapshot: "s", publish: [8080, { port: 8081, address: "127.0.0.1:0" }] });
  for (const { port, address } of box.info.published) console.log(port.toFixed(), address);
  return to.importSnapshot("t", from.exportSnapshot("s"));
}

export async function ended(backend: DurwardSandbox): Promise<boolean> {
  try {
    await backend.sandbox.refresh();
    // @ts-expect-error there is no such option
    await backend.sandbox.exec("true", { timeOut: 3 });
    return false;
  } catch (e) {
    return e instanceof NotFound && e.code === "sandbox_not_found";
  }
}
