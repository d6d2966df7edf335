// The TypeScript client against the daemon at DURWARD_SOCKET, which has the policies `p` and `other`.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { connect, createServer } from "node:net";

import * as durward from "durward";
import { DurwardSandbox, threadSandbox } from "durward/deepagents";

import { behaviour, runAll } from "./report.mjs";

const c = new durward.Durward();
const W = "/workspace/";
const { HELD } = process.env;  // a URL for which `other` asks
const text = (b) => Buffer.from(b).toString();
const box = await c.create({ policy: "p" });

async function refused(promise, name, code) {
  const e = await promise.then(() => assert.fail("it was not refused"), (e) => e);
  assert.ok(e instanceof durward.DurwardError, String(e?.stack));
  assert.deepEqual([e.name, e.code], [name, code], e.message);
  assert.match(e.message, /^[^\n]+$/);
  return e.message;
}
async function gone(what) {
  for (let i = 0; i < 100; i++) {
    if ((await box.exec(`ps ax | grep -c '[${what[0]}]${what.slice(1)}'`)).text === "0\n") return;
    await new Promise((r) => setTimeout(r, 50));
  }
  assert.fail(`${what} still runs`);
}
async function all(iterable) {
  const items = [];
  for await (const x of iterable) items.push(x);
  return items;
}

behaviour("the daemon: version, policies, events", async () => {
  assert.match(await c.version(), /^\d+\.\d+\.\d+$/);
  assert.deepEqual((await c.policies()).sort(), ["other", "p"]);
  assert.ok((await c.events({ limit: 1000 })).some((e) => e.sandbox === box.id && e.event === "sandbox_created"));
});
behaviour("create, update, delete", async () => {
  const a = await c.create({ policy: "p", name: "one", labels: { n: "1" }, env: { COLOUR: "blue" }, ttl: 600, idleTtl: 0 });
  assert.deepEqual([a.info.state, a.info.name, a.info.labels, a.info.ttl, a.info.idleTtl, a.info.workdir],
    ["running", "one", { n: "1" }, 600, 0, "/workspace"]);
  assert.equal((await a.exec("echo $COLOUR")).text, "blue\n");
  await refused(c.create({ policy: "p", name: "one" }), "Conflict", "conflict");
  await a.update({ labels: { n: "2" }, ttl: 100 });
  assert.deepEqual((await c.get(a.id)).info.labels, { n: "2" });
  await a.delete();
  await c.delete(a.id);
  await refused(c.get(a.id), "NotFound", "sandbox_not_found");
  assert.match(await refused(a.exec("true"), "NotFound", "sandbox_not_found"), /create another/);
});
behaviour("stop, resume, snapshot, fork, restore", async () => {
  const a = await c.create({ policy: "p", autoResume: false, onIdle: "stop", image: "host", backend: "bwrap", softTtl: 900, onSoftTtl: "pause" });
  assert.deepEqual([a.info.autoResume, a.info.onIdle, a.info.image, a.info.backend, a.info.kept], [false, "stop", "host", "bwrap", true]);
  assert.deepEqual([a.info.softTtl, a.info.onSoftTtl, a.info.softExpiresAt > 0], [900, "pause", true]);
  assert.deepEqual([(await a.update({ softTtl: 0 })).softTtl, a.info.softExpiresAt], [0, null]);
  await a.write(W + "f", "1");
  assert.equal((await a.stop()).state, "stopped");
  assert.match(await refused(a.exec("true"), "NotRunning", "not_running"), /resume/);
  assert.equal((await a.resume()).state, "running");
  const made = await a.snapshot("ts");
  assert.deepEqual([made.name, made.state, made.sandbox], ["ts", "ready", a.id]);
  await refused(a.snapshot("ts"), "Conflict", "conflict");
  assert.deepEqual([await a.snapshot("ts", { getOrCreate: true }), await c.snapshot("ts"), await c.snapshots()], [made, made, [made]]);
  await a.write(W + "f", "2");
  const fork = await a.fork({ labels: { of: "a" } });
  assert.deepEqual([fork.info.parent, fork.info.labels, text(await fork.read(W + "f"))], [a.id, { of: "a" }, "2"]);
  assert.equal((await a.restore("ts")).snapshot, "ts");
  assert.equal(text(await a.read(W + "f")), "1");
  const old = await c.create({ policy: "p", snapshot: "ts" });
  assert.equal(text(await old.read(W + "f")), "1");
  try {
    assert.equal((await old.pause()).state, "paused");
    assert.equal((await old.resume()).state, "running");
  } catch (e) {
    assert.ok(e instanceof durward.Unsupported, e.stack);
  }
  for (const b of [old, fork, a]) await b.delete();
  await c.deleteSnapshot("ts");
  await refused(c.snapshot("ts"), "NotFound", "snapshot_not_found");
});
behaviour("templates", async () => {
  assert.deepEqual((await c.templates()).map((x) => [x.name, x.policy, x.pool, x.warmUp]), [["ts", "p", 0, true]]);
  const found = await c.template("ts");
  assert.deepEqual([found.labels, found.idleTtl], [{ kind: "ts" }, 120]);
  await refused(c.template("none"), "NotFound", "template_not_found");
  const a = await c.create({ template: "ts", labels: { a: "b" } });
  assert.deepEqual([a.info.template, a.info.labels, a.info.idleTtl], ["ts", { a: "b", kind: "ts" }, 120]);
  assert.equal((await a.exec("cat warm")).text, "up\n");
  await a.delete();
  await refused(c.create({ template: "ts", image: "host" }), "BadRequest", "bad_request");
});
behaviour("volumes", async () => {
  const v = await c.createVolume("ts", { policy: "p", size: 8 << 20, labels: { a: "b" } });
  assert.deepEqual([v.name, v.policy, v.state, v.size, v.access, v.snapshotOf, v.labels, v.mounted], ["ts", "p", "ready", 8 << 20, "one", null, { a: "b" }, []]);
  assert.deepEqual(await c.createVolume("ts", { policy: "p", getOrCreate: true }), v);
  await refused(c.createVolume("ts", { policy: "p" }), "Conflict", "conflict");
  await refused(c.create({ policy: "p", volumes: ["none:/data"] }), "BadRequest", "bad_request");
  assert.equal((await c.snapshotVolume("ts", "ts-1")).snapshotOf, "ts");
  assert.equal((await c.restoreVolume("ts", "ts-1")).state, "ready");
  assert.equal((await c.createVolume("ts-2", { cloneOf: "ts-1" })).size, 8 << 20);
  const pieces = [];
  for await (const piece of c.exportVolume("ts")) pieces.push(piece);
  assert.equal(Buffer.concat(pieces).subarray(257, 262).toString(), "ustar");
  assert.deepEqual((await c.volumes()).map((x) => x.name), ["ts", "ts-1", "ts-2"]);
  for (const name of ["ts", "ts-1", "ts-2"]) await c.deleteVolume(name);
  await refused(c.volume("ts"), "NotFound", "volume_not_found");
});
behaviour("published ports", async () => {
  const a = await c.create({ policy: "p", publish: [8125, { port: 8125, address: "127.0.0.1:0" }] });
  assert.deepEqual(a.info.published.map((p) => [p.port, p.address.split(":")[0]]), [[8125, "127.0.0.1"], [8125, "127.0.0.1"]]);
  const serve = a.stream(["/usr/bin/python3", "-u", "-m", "http.server", "8125", "--bind", "127.0.0.1"]);
  await serve.next();
  for (const { address } of a.info.published) assert.equal((await fetch(`http://${address}/`)).status, 200);
  await serve.return();
  await a.delete();
});
behaviour("snapshots as archives", async () => {
  const a = await c.create({ policy: "p" });
  const blob = randomBytes(3 << 20);
  await a.write(W + "blob", blob);
  await a.snapshot("arc");
  const tar = Buffer.concat(await all(c.exportSnapshot("arc")));
  assert.equal((await c.importSnapshot("arc2", [tar])).name, "arc2");
  assert.equal((await c.importSnapshot("arc3", c.exportSnapshot("arc"))).state, "ready");
  const b = await c.create({ policy: "p", snapshot: "arc3" });
  assert.ok(blob.equals(await b.read(W + "blob")));
  await refused(c.importSnapshot("arc2", [tar]), "Conflict", "conflict");
  await refused(all(c.exportSnapshot("none")), "NotFound", "snapshot_not_found");
  await refused(c.importSnapshot("half", [tar.subarray(0, tar.length / 2)]), "DurwardError", "snapshot_failed");
  await refused(c.importSnapshot("junk", Array(400).fill(Buffer.alloc(120000, "junk"))), "DurwardError", "snapshot_failed");
  for await (const _ of c.exportSnapshot("arc")) break;
  await assert.rejects(c.importSnapshot("own", (async function* () { yield tar.subarray(0, 9); throw new Error("mine"); })()), /^Error: mine$/);
  for (const name of ["arc", "arc2", "arc3"]) await c.deleteSnapshot(name);
  assert.deepEqual(await c.snapshots(), []);
  for (const x of [a, b]) await x.delete();
});
behaviour("requests that wait for somebody; what a policy says; the audit log", async () => {
  const held = await c.create({ policy: "other" });
  for (const [word, status] of [["deny", "403"], ["allow", "200"]]) {
    const answer = held.exec(`curl -s -m 30 -o /dev/null -w '%{http_code}' ${HELD}`);
    const [one] = await c.approvals({ wait: 20 });
    assert.deepEqual([one.method, one.url, one.policy, one.sandbox], ["GET", HELD, "other", held.id]);
    assert.deepEqual(await c.approval(one.id), one);
    assert.deepEqual(await c[word](one.id), { id: one.id, decision: word === "deny" ? "denied" : "allowed", host: null, taken: true });
    assert.deepEqual([(await answer).text, one.host], [status, null]);
    await refused(c.allow(one.id), "NotFound", "not_found");
  }
  await held.delete();
  for await (const record of c.audit())
    if (record.kind === "denied" && record.code === "approval_denied") break;
  assert.deepEqual([(await c.explain("GET", HELD, "other")).decision, (await c.approvals()).length], ["ask", 0]);
  assert.ok(Object.keys(await c.policy("other")).length && (await c.metrics()).includes("durward_"));
  assert.ok((await c.status()).roles.length > 3);
  assert.deepEqual(await c.fleet(), { host: null, connected: false, read: null, ageSeconds: null, hosts: [] });
  const log = await c.verifyLog();
  assert.ok(log.ok && log.records > 0 && log.files > 0 && log.problem === undefined, JSON.stringify(log));
  assert.ok((await c.queryLog({ kind: "lifecycle", limit: 3 })).length && (await c.exportCase({ kind: "lifecycle" })).durward_case === 1);
  assert.equal((await c.codes()).codes.find((x) => x.code === "foreign_credential").severity, "critical");
  const proposal = await c.propose({ method: "GET", url: "https://proposed.example/x", policy: "other" });
  const hush = await c.suppress({ code: "no_rule", host: "proposed.example", reason: "a test", expires_in: 60, policy: "other" });
  // the daemon's own socket may accept what it wrote, a token may not
  const said = await c.acceptSuppression(hush.id).then((x) => x.state, (e) => e.code), then = said === "own" ? "open" : "active";
  assert.deepEqual([hush.state, (await c.suppressions()).some((x) => x.id === hush.id), ["active", "own"].includes(said), (await c.suppression(hush.id)).state, (await c.liftSuppression(hush.id)).state],
    ["open", true, true, then, "lifted"]);
  assert.deepEqual([(await c.proposals()).length, (await c.proposal(proposal.id)).after], [1, "allow"]);
  assert.equal((await c.rejectProposal(proposal.id)).state, "rejected");
  await refused(c.acceptProposal(proposal.id), "Conflict", "conflict");
  await c.reload();
  await refused(c.consoleUrl(), "Unsupported", "no_console");
});
behaviour("commands that outlive their client", async () => {
  const one = await box.start("echo first; until test -e /tmp/ts-go; do sleep 0.1; done; echo second; exit 4");
  const pieces = box.attach(one.id);
  assert.equal(text((await pieces.next()).value.data), "first\n");
  const other = box.attach(one.id);
  assert.equal(text((await other.next()).value.data), "first\n");
  await refused(all(pieces), "Conflict", "detached");
  await other.return();
  assert.equal((await box.execs()).find((x) => x.id === one.id).kept, true);
  await box.exec("touch /tmp/ts-go");
  const last = await all(box.attach(one.id));
  assert.deepEqual([last.filter((x) => x.type !== "exit").map((x) => text(x.data)).join(""), last.at(-1).exitCode], ["first\nsecond\n", 4]);
  await refused(all(box.attach(one.id)), "NotFound", "not_found");
});
behaviour("forward, commands that run, cancel", async () => {
  const serve = box.stream(["/usr/bin/python3", "-u", "-m", "http.server", "8124", "--bind", "127.0.0.1"]);
  await serve.next();
  const [web] = await box.services();
  assert.deepEqual([web.name, web.port, web.state, web.preview], ["web", 8124, "healthy", null]);
  await refused(box.preview("web"), "NotFound", "preview_not_found");
  for (const one of ["web", 8000, undefined]) assert.equal(await box.revokePreviews(one), undefined);
  const s = await box.forward(8124);
  s.write("GET / HTTP/1.0\r\n\r\n");
  assert.match(text((await all(s))[0]), /^HTTP\/1.0 200/);
  const [running] = await box.execs();
  await box.cancel(running.id);
  assert.equal((await all(serve)).at(-1).exitCode, 137);
  await refused(box.forward(8124), "Unavailable", "not_listening");
});
behaviour("a backend of a sandbox that is gone says so", async () => {
  const b = await DurwardSandbox.create({ policy: "p" });
  assert.deepEqual((await b.ls("/workspace")).files, []);
  await b.close();
  for (const r of [await b.ls("/workspace"), await b.delete("/workspace/x"), await b.edit("/x", "a", "b")])
    assert.match(r.error, /^[^\n]*create another[^\n]*$/);
});
behaviour("what is refused says so in one line", async () => {
  await refused(c.create({ policy: "nope" }), "BadRequest", "bad_request");
  await refused(c.create(), "BadRequest", "bad_request");
  for (const id of ["../status", "..", ".", "a/b?c#d", "sb-none", "", "\ud800"])
    await assert.rejects(c.get(id), durward.DurwardError, `id ${JSON.stringify(id)}`);
  assert.deepEqual((await all(c.sandboxes())).map((s) => s.id), [box.id], "and nothing happened");
});
behaviour("getOrCreate of six at once: one sandbox; found by label and by state", async () => {
  const got = await Promise.all(Array.from({ length: 6 }, () => c.getOrCreate({ labels: { k: "v= &" }, policy: "p" })));
  assert.equal(new Set(got.map((s) => s.id)).size, 1);
  assert.deepEqual((await all(c.sandboxes({ labels: { k: "v= &" } }))).map((s) => s.id), [got[0].id]);
  assert.equal((await all(c.sandboxes({ state: "running" }))).length, 2);
  assert.deepEqual((await all(c.sandboxes({ pageSize: 1 }))).map((s) => s.id), (await all(c.sandboxes())).map((s) => s.id));
  await refused(c.getOrCreate({ labels: { k: "v= &" }, policy: "other" }), "Conflict", "conflict");
  await got[0].delete();
});
behaviour("exec: output, code, streams, standard input, place and environment", async () => {
  const r = await box.exec("echo out; echo err >&2; exit 7");
  assert.deepEqual([r.exitCode, r.text, r.truncated, r.timedOut], [7, "out\nerr\n", false, false]);
  const s = await box.exec("echo out; echo err >&2", { split: true });
  assert.deepEqual([text(s.output), text(s.stderr)], ["out\n", "err\n"]);
  const odd = Buffer.from([0, 255, 10, 0]);
  assert.deepEqual(Buffer.from((await box.exec(["cat"], { stdin: odd })).output), odd);
  assert.equal((await box.exec("pwd; echo $A", { cwd: "/tmp", env: { A: "1" } })).text, "/tmp\n1\n");
  assert.equal((await box.exec(["/no/such"])).exitCode, 127);
});
behaviour("exec: bounds", async () => {
  const late = await box.exec("echo a; sleep 60", { timeout: 1 });
  assert.deepEqual([late.exitCode, late.timedOut, late.text], [124, true, "a\n"]);
  const cut = await box.exec("head -c 5000 /dev/zero; exit 3", { maxOutput: 1000 });
  assert.deepEqual([cut.exitCode, cut.output.length, cut.truncated], [3, 1000, true]);
  const large = await box.exec("head -c 6000000 /dev/zero; echo end");
  assert.deepEqual([large.output.length, large.truncated], [6000004, false]);
  assert.equal((await box.exec(`printf %s '${"x".repeat(300000)}'`)).output.length, 300000);
  const eight = await Promise.all(Array.from({ length: 8 }, () => box.exec("head -c 600000 /dev/zero; sleep 0.3")));
  assert.deepEqual(eight.map((r) => r.output.length), Array(8).fill(600000));
});
behaviour("exec: an abort kills the command", async () => {
  const stop = new AbortController();
  const running = box.exec("sleep 3017", { signal: stop.signal });
  running.catch(() => undefined);
  while ((await box.exec("ps ax | grep -c '[s]leep 3017'")).text === "0\n");
  stop.abort(new Error("enough"));
  await assert.rejects(running, { message: "enough" });
  await gone("sleep 3017");
  await assert.rejects(box.exec("true", { signal: stop.signal }), { message: "enough" });
});
behaviour("stream: pieces as they come, the end last; leaving it kills the command", async () => {
  const times = [], got = [];
  for await (const piece of box.stream("echo a; sleep 0.4; echo b >&2; exit 5", { split: true })) {
    times.push(Date.now());
    got.push(piece.type === "exit" ? piece.exitCode : `${piece.type}:${text(piece.data)}`);
  }
  assert.deepEqual(got, ["stdout:a\n", "stderr:b\n", 5]);
  assert.ok(times[1] - times[0] > 200);
  for await (const piece of box.stream("echo on; sleep 3018")) {
    assert.equal(text(piece.data), "on\n");
    break;
  }
  await gone("sleep 3018");
  const stop = new AbortController();
  await assert.rejects(async () => {
    for await (const _ of box.stream("echo on; sleep 3019", { signal: stop.signal })) stop.abort(new Error("enough"));
  }, { message: "enough" });
  await gone("sleep 3019");
});
behaviour("files: bytes, modes, odd names", async () => {
  const blob = randomBytes(17 << 20);
  await box.write(W + "a/b/blob", blob);
  assert.ok(blob.equals(await box.read(W + "a/b/blob")));
  const odd = W + "n \u00e4 % & ? # +\n'\"";
  await box.write(odd, "odd", 0o750);
  const entry = (await box.listFiles("/workspace")).find((e) => W + e.name === odd);
  assert.deepEqual([text(await box.read(odd)), entry.type, entry.size, entry.mode & 0o777], ["odd", "file", 3, 0o750]);
  await box.exec("printf x > \"$(printf 'l\\374')\"");
  const raw = (await box.listFiles("/workspace")).find((e) => e.name.startsWith("l")).raw;
  assert.deepEqual([...raw], [0x6c, 0xfc]);
  assert.equal(text(await box.read(Buffer.concat([Buffer.from(W), raw]))), "x");
  await refused(box.read(W + "\ud800"), "FileError", "invalid_path");
});
behaviour("files: a result each, in order; archives; removal", async () => {
  const codes = (rs) => rs.map((r) => r.error && r.error.code);
  assert.deepEqual(codes(await box.upload([[W + "u/1", "1"], ["relative", ""], [W + "u", ""]])),
    [null, "invalid_path", "is_directory"]);
  const down = await box.download([W + "u/1", W + "none", W + "u", "rel", W + "\0"]);
  assert.deepEqual(codes(down).slice(0, 4), [null, "file_not_found", "is_directory", "invalid_path"]);
  assert.ok(down[4].error, "NUL");
  assert.equal(text(down[0].data), "1");
  const r = await box.batch([
    { op: "write", path: W + "q", data: "AAH/", encoding: "base64" }, { op: "read", path: W + "q" },
    { op: "delete", path: W + "q" }, { op: "read", path: W + "q" }]);
  assert.deepEqual([[...r[1].data], codes(r)], [[0, 1, 255], [null, null, null, "file_not_found"]]);
  await box.writeTar(W + "t", await box.readTar(W + "u"));
  assert.equal((await box.exec("cmp u/1 t/1 && echo same")).text, "same\n");
  await refused(box.remove(W + "u"), "FileError", "not_empty");
  await box.remove(W + "u", { recursive: true });
  await refused(box.read(W + "u/1"), "FileError", "file_not_found");
});
behaviour("identities: issued and revoked", async () => {
  const i = await c.issueIdentity({ policy: "p", ttl: 60 });
  assert.ok(i.token && i.proxy.includes(i.token) && existsSync(i.trustDir) && i.ca.includes("BEGIN CERTIFICATE"));
  await c.revokeIdentity(i.id);
  await refused(c.revokeIdentity(i.id), "NotFound", "not_found");
  await refused(c.issueIdentity({ policy: "nope" }), "BadRequest", "bad_request");
});
behaviour("no answer: what may be asked twice is, and nothing else", async () => {
  const asked = [];
  let left = 0, way = "close";
  const front = createServer((near) => {
    near.on("error", () => undefined).once("data", (head) => {
      asked.push(head.toString().split("\r\n")[0]);
      if (left-- > 0) {
        if (way === "hang") return;
        return way === "busy" ? void near.end('HTTP/1.1 503 Busy\r\nContent-Length: 49\r\n\r\n{"error":{"code":"unavailable","message":"busy"}}') : void near.destroy();
      }
      const far = connect(process.env.PLAIN);
      far.on("error", () => near.destroy()).write(head);
      near.pipe(far).pipe(near);
    });
  });
  const drop = (count, how = "close") => ((asked.length = 0), (left = count), (way = how));
  const path = `${process.env.HOME}/front.sock`;
  await new Promise((done) => front.listen(path, done));
  try {
    const d = new durward.Durward(path), once = new durward.Durward(path, { retries: 0 });
    drop(2);
    assert.deepEqual([(await d.policies()).length > 0, asked.length], [true, 3]);
    drop(3);
    await refused(d.policies(), "Unavailable", "connection");
    drop(1);
    await refused(d.create({ policy: "p" }), "Unavailable", "connection");
    assert.equal(asked.length, 1);
    drop(1);
    const box = await d.getOrCreate({ policy: "p", labels: { again: "1" } });
    assert.equal(asked.length, 2);
    drop(1);
    await refused(box.exec("true"), "Unavailable", "connection");
    drop(1);
    await box.write("/workspace/again", "1");
    drop(1);
    await refused(box.write("/workspace/again", "2", undefined, { ifVersion: "none" }), "Unavailable", "connection");
    drop(1);
    await box.delete();
    drop(1);
    await refused(once.policies(), "Unavailable", "connection");
    drop(1, "busy");
    assert.deepEqual([(await d.policies()).length > 0, asked.length], [true, 2]);
    drop(9, "hang");
    await refused(new durward.Durward(path, { timeout: 0.3 }).policies(), "Unavailable", "timeout");
    assert.equal(asked.length, 1);
  } finally {
    await new Promise((done) => front.close(done));
  }
});
behaviour("no daemon: one line that says what to do", async () => {
  const none = new durward.Durward("/nonexistent/durward.sock");
  assert.match(await refused(none.version(), "Unavailable", "no_daemon"), /durward serve/);
  await refused(DurwardSandbox.create({ socket: none.socket }), "Unavailable", "no_daemon");
  assert.throws(() => new durward.Durward("http://127.0.0.1:8443"), { name: "TypeError", message: /unix socket or https only/ });
  for (const bad of ["https://durward.example/v1", "relative.sock"])
    assert.throws(() => new durward.Durward(bad), { name: "TypeError", message: /^[^\n]+$/ });
  const far = process.env.DURWARD_URL; // in the second run
  if (!far) return;
  assert.match(await refused(new durward.Durward(far, { token: "x.y", ca: "", retries: 0 }).version(), "Unavailable", "tls"), /DURWARD_CA/);
  const nobody = new durward.Durward(far.replace(/:\d+$/, ":1"), { token: "x.y", retries: 0 });
  assert.match(await refused(nobody.version(), "Unavailable", "no_daemon"), /controller: \{https: ADDRESS:PORT\}/);
});
behaviour("backend: fromId, getOrCreate and threads find the same sandbox", async () => {
  const a = await threadSandbox("t-1", { policy: "p" });
  assert.equal((await threadSandbox("t-1", { policy: "p" })).id, a.id);
  assert.equal((await DurwardSandbox.getOrCreate({ labels: { thread_id: "t-1" } })).id, a.id);
  const again = await DurwardSandbox.fromId(a.id);
  await again.write(W + "kept", "by the other");
  assert.equal((await a.execute("cat kept")).output, "by the other");
  await refused(DurwardSandbox.fromId("sb-none"), "NotFound", "sandbox_not_found");
  await assert.rejects(threadSandbox(""), TypeError);
  await a.close();
  await a.close();
  const after = await again.execute("true");
  assert.deepEqual([after.exitCode, again.isRunning], [1, false]);
  assert.match(after.output, /^[^\n]*create another$/);
});
behaviour("backend: times out with 124; rejects for no file", async () => {
  const b = DurwardSandbox.of(box, { timeout: 1 });
  assert.deepEqual(await b.execute("echo a; sleep 60"),
    { output: "a\nCommand timed out after 1 seconds", exitCode: 124, truncated: false });
  assert.equal((await b.execute("sleep 1.2; echo b", { timeout: 30 })).output, "b\n");
  await box.exec("mkdir -p shut && touch shut/f && chmod 000 shut/f && mkdir dir");
  const errors = async (...paths) => (await b.downloadFiles(paths.map((p) => W + p))).map((r) => r.error);
  assert.deepEqual(await errors("dir", "none", "dir/../shut/f/x"), ["is_directory", "file_not_found", "invalid_path"]);
  if (process.geteuid() !== 0) assert.deepEqual(await errors("shut/f"), ["permission_denied"]);
  assert.deepEqual(await b.uploadFiles([["rel", new Uint8Array(1)], [W + "fine", new Uint8Array(1)]]),
    [{ path: "rel", error: "invalid_path" }, { path: W + "fine", error: null }]);
  assert.equal((await b.execute("a\0b")).exitCode, 1);
});
behaviour("backend: initial files that cannot be written leave no sandbox", async () => {
  const before = (await all(c.sandboxes())).length;
  await refused(DurwardSandbox.create({ policy: "p", initialFiles: { "not/absolute": "x" } }), "FileError", "invalid_path");
  assert.equal((await all(c.sandboxes())).length, before);
});

try {
  await runAll();
} finally {
  await box.delete();
}
