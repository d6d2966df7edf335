// Type-checked, not run: what a user of the package writes.
import { createDeepAgent } from "deepagents";
import { Durward, NotFound, type ExecEvent, type Sandbox } from "durward";
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
