/** Snapshots as archives, over an upgraded connection: frames of a type (one byte), a length (four bytes, big endian)
 * and as many bytes. To the daemon 0: bytes, none when that was all. From it 1: bytes; 3: its last word. */
import { once } from "node:events";
import type { Socket } from "node:net";

import type { Where } from "./address.js";
import { DurwardError, refusal, unreachable } from "./errors.js";
import { readSnapshot, type Snapshot } from "./models.js";
import { upgrade } from "./transport.js";

/** Bytes of an archive, as they come: a readable stream is one. */
export type Archive = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

const HEAD = 5;
const CHUNK = 60 * 1024;
const FRAME_MAX = 64 * 1024;
const BYTES = 1;
const LAST = 3;

function open(where: Where, target: string): Promise<Socket> {
  return upgrade(where, target, "durward-archive").then((s) => s.on("error", () => undefined)); // who reads is told
}

/** Bytes of the archive; the daemon's last word is what it returns. */
async function* frames(where: Where, s: Socket): AsyncGenerator<Uint8Array, Snapshot | undefined> {
  let held: Buffer = Buffer.alloc(0);
  try {
    for await (const part of s) {
      held = held.length ? Buffer.concat([held, part as Buffer]) : (part as Buffer);
      while (held.length >= HEAD) {
        const kind = held[0];
        const size = held.readUInt32BE(1);
        if ((kind !== BYTES && kind !== LAST) || size > FRAME_MAX)
          throw new DurwardError("the daemon's answer is malformed", "malformed");
        if (held.length < HEAD + size) break;
        const payload = held.subarray(HEAD, HEAD + size);
        held = held.subarray(HEAD + size);
        if (kind === LAST) return outcome(payload);
        yield payload;
      }
    }
  } catch (e) {
    throw e instanceof DurwardError ? e : unreachable(where.text, e);
  } finally {
    s.destroy();
  }
  throw unreachable(where.text, new Error("the daemon ended the transfer"));
}

/** Of a volume there is nothing more to say. */
function outcome(payload: Buffer): Snapshot | undefined {
  const word = JSON.parse(payload.toString("utf8"));
  if (!word.snapshot && !word.volume) throw refusal(101, payload);
  return word.snapshot && readSnapshot(word.snapshot);
}

export async function* exported(where: Where, target: string): AsyncGenerator<Uint8Array, void> {
  yield* frames(where, await open(where, target));
}

function frame(piece: Uint8Array): Buffer {
  const head = Buffer.alloc(HEAD);
  head.writeUInt32BE(piece.length, 1);
  return Buffer.concat([head, piece]);
}

export async function imported(where: Where, target: string, archive: Archive): Promise<Snapshot> {
  const s = await open(where, target);
  let over = false;
  const stop = new AbortController();
  const answer = last(frames(where, s)).finally(() => {
    over = true;
    stop.abort();
  });
  answer.catch(() => undefined); // it is awaited below, unless the archive itself fails
  try {
    for await (const whole of archive) {
      for (let at = 0; at < whole.length && !over; at += CHUNK)
        if (!s.write(frame(whole.subarray(at, at + CHUNK))))
          await once(s, "drain", { signal: stop.signal }).catch(() => undefined); // or the answer came
      if (over) break;
    }
    if (!over) s.write(frame(new Uint8Array(0)));
    return await answer;
  } finally {
    s.destroy();
  }
}

async function last(of: AsyncGenerator<Uint8Array, Snapshot | undefined>): Promise<Snapshot> {
  for (;;) {
    const step = await of.next();
    if (step.done && step.value) return step.value;
    if (step.done) throw new DurwardError("the daemon's answer is malformed", "malformed");
  }
}
