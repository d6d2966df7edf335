/** HTTP over the daemon's unix socket, or TLS. Each call has a connection of its own: none is left open when it ends,
 * and calls that last do not hold others up. */
import type { Socket } from "node:net";
import { request, type ClientRequest, type IncomingMessage } from "node:http";
import { request as requestTls } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";

import type { Where } from "./address.js";
import { DurwardError, refusal, unreachable, Unavailable } from "./errors.js";

/** Bytes of one answer that are taken; more than the API ever sends at once. */
const MOST = 256 * 1024 * 1024;

export interface Call {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly target: string;
  readonly body?: Uint8Array | undefined;
  /** Seconds until the answer must begin (default: the client's timeout); 0: for ever. */
  readonly wait?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** It may be sent twice, though its method does not say so. */
  readonly again?: boolean;
}

/** Where no answer came, or 503, it may be sent again: twice does what once does, and answers the same. */
function worthAnother(call: Call, e: unknown): boolean {
  const whole = call.method === "GET" || (call.method === "PUT" && !call.target.includes("if_version="));
  const passing = e instanceof Unavailable || (e instanceof DurwardError && e.status === 503);
  return (call.again === true || whole) && passing && e.code !== "timeout" && e.code !== "permission" && !call.signal?.aborted;
}

/** The answer's head has come and is 2xx. Whoever gets it reads or destroys it. */
export function open(where: Where, call: Call): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    if (call.signal?.aborted) {
      reject(call.signal.reason);
      return;
    }
    const body = call.body ?? new Uint8Array(0);
    const req: ClientRequest = (where.url ? requestTls : request)({
      ...where.options(), method: call.method, path: call.target, agent: false,
      headers: { ...where.headers(), connection: "close", "content-length": body.byteLength },
    });
    const wait = call.wait ?? where.timeout;
    const stop = () => req.destroy(call.signal?.reason);
    const timer = wait
      ? setTimeout(() => {
          settle();
          reject(new Unavailable(`the Durward daemon at ${where} did not answer in time`, "timeout"));
          req.destroy();
        }, wait * 1000)
      : undefined;
    const settle = () => {
      clearTimeout(timer);
      call.signal?.removeEventListener("abort", stop);
    };
    call.signal?.addEventListener("abort", stop, { once: true });
    req.on("error", (e) => {
      settle();
      reject(call.signal?.aborted ? call.signal.reason : unreachable(where.text, e));
    });
    req.on("response", (answer) => {
      settle();
      const status = answer.statusCode ?? 0;
      if (status >= 200 && status < 300) resolve(answer);
      else readAll(where, answer).then((b) => reject(refusal(status, b, /\/(files|tar)\b/.test(call.target))), reject);
    });
    req.end(body);
  });
}

/** A connection that the daemon hands over (101). What has come of it already is read first. */
export function upgrade(where: Where, target: string, protocol: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const req = (where.url ? requestTls : request)({
      ...where.options(), method: "POST", path: target, agent: false, timeout: where.timeout * 1000,
      headers: { ...where.headers(), connection: "Upgrade", upgrade: protocol, "content-length": 0 },
    });
    req.on("error", (e) => reject(unreachable(where.text, e)));
    req.on("timeout", () => req.destroy(new Error("it did not answer in time")));
    req.on("upgrade", (_, raw, first) => {
      if (first.length) raw.unshift(first);
      (raw as Socket).setTimeout(0);
      resolve(raw as Socket);
    });
    req.on("response", (answer) => {
      readAll(where, answer).then((b) => reject(refusal(answer.statusCode ?? 0, b, false)), reject);
    });
    req.end();
  });
}

async function readAll(where: Where, answer: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const part of answer) {
      size += (part as Buffer).length;
      if (size > MOST) throw new DurwardError(`the answer is larger than ${MOST} bytes`, "too_large");
      parts.push(part as Buffer);
    }
  } catch (e) {
    if (e instanceof DurwardError) throw e;
    throw unreachable(where.text, e);
  } finally {
    answer.destroy();
  }
  return Buffer.concat(parts, size);
}

/** The whole body of a 2xx answer. An abort while it comes ends the connection too. */
export async function ask(where: Where, call: Call): Promise<Buffer> {
  for (let n = 0; n < where.retries; n++) {
    try {
      return await once(where, call);
    } catch (e) {
      if (!worthAnother(call, e)) throw e;
      await sleep(Math.min(100 * 4 ** n, 5000), undefined, call.signal && { signal: call.signal }).catch(() => {
        throw call.signal?.reason;
      });
    }
  }
  return once(where, call);
}

async function once(where: Where, call: Call): Promise<Buffer> {
  const answer = await open(where, call);
  const stop = () => answer.destroy();
  call.signal?.addEventListener("abort", stop, { once: true });
  try {
    return await readAll(where, answer);
  } catch (e) {
    throw call.signal?.aborted ? call.signal.reason : e;
  } finally {
    call.signal?.removeEventListener("abort", stop);
  }
}

/** Its lines as they come. */
export async function* lines(where: Where, answer: IncomingMessage): AsyncGenerator<string> {
  const longest = 4 * 1024 * 1024; // bytes of a line
  let held: Buffer = Buffer.alloc(0);
  try {
    for await (const part of answer) {
      held = held.length ? Buffer.concat([held, part as Buffer]) : (part as Buffer);
      for (let at = held.indexOf(10); at >= 0; at = held.indexOf(10)) {
        yield held.subarray(0, at).toString("utf8");
        held = held.subarray(at + 1);
      }
      if (held.length > longest) throw new DurwardError("a line of the answer has no end", "too_large");
    }
  } catch (e) {
    if (e instanceof DurwardError) throw e;
    throw unreachable(where.text, e);
  } finally {
    answer.destroy();
  }
}
