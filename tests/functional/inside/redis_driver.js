// ioredis as programs use it. argv: host. Says "ok".
const assert = require("assert");
const Redis = require("ioredis");

async function main() {
  const options = { host: process.argv[2], port: 6379, username: "u", password: "placeholder" };
  const r = new Redis(options), listener = new Redis(options);
  assert.strictEqual(await r.set("js", "value"), "OK");
  assert.strictEqual(await r.get("js"), "value");
  assert.deepStrictEqual(await r.multi().incr("js:n").del("js:n").exec(), [[null, 1], [null, 1]]);
  const said = await r.pipeline().get("js").config("GET", "*").get("js").exec();
  assert.strictEqual(said[0][1], "value");
  assert.match(said[1][0].message, /NOPERM durward: refused/);
  assert.strictEqual(said[2][1], "value");
  const heard = new Promise((resolve) => listener.on("message", (c, m) => resolve(m)));
  await listener.subscribe("js:c");
  await r.publish("js:c", "hello");
  assert.strictEqual(await heard, "hello");
  await r.quit();
  listener.disconnect();
  console.log("ok");
}

main().catch((e) => { console.error(e); process.exit(1); });
