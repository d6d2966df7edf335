// pair() with a backend that is no sandbox of ours: its commands run in plain processes of this host. GATE is the
// listener (HOST:PORT), AROUND and NOBODY are ports where something answers and where nothing does.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

import { BaseSandbox } from "deepagents";
import { Durward, trustFiles, variables } from "durward";
import { pair, PairedSandbox } from "durward/deepagents";

import { behaviour, runAll } from "./report.mjs";

const { GATE, AROUND, NOBODY, FOLDER, TOLD, TOLD_THERE } = process.env;
const USER = "curl -sS -m 10 https://api.github.com/user";

class Plain extends BaseSandbox {
  id = "plain";
  commands = [];
  execute(command) {
    this.commands.push(command);
    // bash, unlike dash, goes on after a file that it cannot source: what we send must not.
    const r = spawnSync("bash", ["-c", `exec 2>&1; ${command}`],
      { env: { PATH: "/usr/bin:/bin", HOME: "/nonexistent" }, encoding: "utf8", timeout: 60000 });
    return { output: r.stdout, exitCode: r.status, truncated: false };
  }
  uploadFiles(files) {
    for (const [path, data] of files) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, data);
    }
    return files.map(([path]) => ({ path, error: null }));
  }
  downloadFiles(paths) {
    return paths.map((path) => ({ path, content: readFileSync(path), error: null }));
  }
}

const plain = new Plain();
const options = { policy: "p", proxyHost: `http://${GATE}`, folder: FOLDER };  // there is one in TLS, too
const warned = [];
process.on("warning", (w) => warned.push(w));
const said = async (p) => (await p.execute(USER)).output;
const failure = (promise) => promise.then(() => assert.fail("it paired"), (e) => {
  assert.equal(e.name, "PairingError", e.stack);
  assert.match(e.message, /^[^\n]+$/);
  return e.message;
});

behaviour("variables are those of `durward env`", async () => {
  const c = new Durward();
  let identity;
  for (const [remote, scheme, text] of [[true, /^https:/, TOLD_THERE], [false, /^http:/, TOLD]]) {
    identity = await c.issueIdentity({ policy: "p", ttl: 60, remote });
    const told = JSON.parse(text), ours = variables(identity, { trustDir: "/there" });
    assert.match(ours.HTTPS_PROXY, scheme);
    assert.match(told.HTTPS_PROXY, scheme);
    assert.deepEqual(Object.keys(ours).sort(), Object.keys(told).sort());
    for (const [k, v] of Object.entries(told))
      if (!/^https?_proxy$/i.test(k) && !(k in identity.env)) assert.equal(ours[k], v, k);
  }
  assert.equal(variables({ ...identity, proxy: "https://sandbox:tok@g:443" }, { proxyHost: "http://10.0.0.1:3128" }).https_proxy,
    "http://sandbox:tok@10.0.0.1:3128");
  const away = trustFiles({ ...identity, trustDir: "/nonexistent" });
  for (const [name, pem] of Object.entries(identity.caHashed)) assert.equal(Buffer.from(away.get("certs/" + name)).toString(), pem);
  assert.equal(Object.values(identity.caHashed).join("").trim(), identity.ca.trim());
  assert.ok(Object.keys(identity.env).includes("GITHUB_TOKEN"));
  for (const bad of ["a b", "h:1@evil", "ftp://h", "", "h:1/x", "[::1"])
    assert.throws(() => variables(identity, { proxyHost: bad }), TypeError, bad);
  assert.throws(() => variables(identity, { trustDir: "relative" }), TypeError);
  assert.ok(variables(identity, { proxyHost: "[::1]" }).HTTPS_PROXY.endsWith(`@[::1]:${GATE.split(":")[1]}`));
  await c.revokeIdentity(identity.id);
});
behaviour("pair: through the gate with the injected key, and what gets around it is a warning", async () => {
  assert.notEqual((await plain.execute(USER)).exitCode, 0, "a backend without pairing does not get there");
  const p = await pair(plain, { ...options, elsewhere: [AROUND, NOBODY, "name:no-such-name.invalid"] });
  assert.deepEqual([p.verification.throughGate, p.verification.around], [true, [AROUND]], p.verification.detail);
  await new Promise(setImmediate);
  assert.deepEqual(warned.map((w) => [w.name, w.message.includes(AROUND)]), [["BypassWarning", true]]);
  assert.match(await said(p), /octo/);
  const denied = await p.execute("curl -sS -o /dev/null -w '%{http_connect}' https://evil.example.com/");
  assert.match(denied.output, /403$/);
  assert.equal((await p.execute("cat <<'E'\nit's $HOME\nE\n")).output, "it's $HOME\n");
  const env = (await p.execute("env")).output;
  for (const name of ["https_proxy", "NODE_EXTRA_CA_CERTS", "JAVA_TOOL_OPTIONS", "GITHUB_TOKEN"])
    assert.ok(env.includes(name + "="), name);
  assert.equal((await p.write(FOLDER + "-work/a", "one")).error, undefined);
  assert.match((await p.read(FOLDER + "-work/a")).content, /one/);
  assert.equal((await p.delete(FOLDER + "-work")).error, undefined);
  assert.deepEqual(plain.commands.filter((c) => c.includes(p.identity.token)), [], "no token in a command line");
  renameSync(FOLDER + "/env", FOLDER + "/away");
  const gone = await p.execute("echo ran");
  assert.ok(gone.exitCode !== 0 && !gone.output.includes("ran"), "without our file no command runs");
  renameSync(FOLDER + "/away", FOLDER + "/env");
  await p.close();
  await p.close();
  assert.match((await p.execute("echo ran")).output, /^[^\n]*closed[^\n]*$/);
  assert.equal(existsSync(FOLDER), false);
});
behaviour("pair: refused where something gets around and a lock is required, or the proxy is not reached", async () => {
  assert.match(await failure(pair(plain, { ...options, elsewhere: [AROUND], requireLock: true })), /network lock/);
  for (const elsewhere of [["bogus"], ["tcp:1.1.1.1"], [], "tcp:1.1.1.1:443", ["udp:[::1:53"], [7]])
    await assert.rejects(pair(plain, { ...options, elsewhere, requireLock: true }), { name: "TypeError", message: /elsewhere/ });
  const nowhere = NOBODY.slice(4);
  const unreached = await failure(pair(plain, { ...options, elsewhere: [], proxyHost: `http://${nowhere}` }));
  assert.ok(unreached.includes("proxyHost") && unreached.includes(nowhere), unreached);
  for (const useless of [{}, null, undefined, "x", { id: "x", execute() {} }])
    await assert.rejects(pair(useless, options), { name: "TypeError", message: /^pair\(\) wants [^\n]*uploadFiles[^\n]*$/ });
  assert.equal(existsSync(FOLDER), false, "and leaves nothing");
  const tight = await pair(plain, { ...options, elsewhere: [NOBODY], requireLock: true });
  assert.deepEqual(tight.verification.around, []);
  await tight.close();
});
behaviour("pair: a token is renewed before commands; a stranger's is not known", async () => {
  const q = await PairedSandbox.of(plain, { ...options, ttl: 2 });
  const first = q.identity;
  let answer = "";
  while (Date.now() / 1000 < first.expires + 0.5) {
    answer = await said(q);
    await new Promise((r) => setTimeout(r, 100));
  }
  assert.match(answer, /octo/);
  assert.notEqual(q.identity.id, first.id);
  const before = q.identity.id;
  while (Date.now() / 1000 < q.identity.expires - 0.9) await new Promise((r) => setTimeout(r, 50));
  const together = await Promise.all([said(q), said(q), said(q)]);
  assert.ok(together.every((x) => x.includes("octo")) && q.identity.id !== before);
  await q.close();
  const r = await PairedSandbox.of(plain, options);
  plain.execute(`sed -i 's/sandbox:...../sandbox:AAAAA/' ${FOLDER}/env`);
  assert.match((await r.verify([])).detail, /does not know this identity/);
  await r.close();
});

await runAll();
