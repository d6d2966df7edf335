// pg and postgres (postgres.js) as programs use them. argv: host. Says "ok".
const assert = require("assert");
const { Client, Pool } = require("pg");
const postgres = require("postgres");

const host = process.argv[2];

async function pg() {
  const client = new Client({ host, database: "orders", user: "x", password: "placeholder", application_name: "mine" });
  await client.connect();
  assert.strictEqual((await client.query("SELECT a FROM t WHERE id = $1", [3])).rows[0].a, "row 3");
  assert.strictEqual((await client.query({ name: "named", text: "SELECT a FROM t WHERE id = $1", values: [4] })).rows[0].a, "row 4");
  assert.strictEqual((await client.query({ name: "named", text: "SELECT a FROM t WHERE id = $1", values: [5] })).rows[0].a, "row 5");
  const both = await client.query("SELECT 1 AS a; SELECT 2 AS a");
  assert.deepStrictEqual(both.map((r) => r.rows[0].a), [1, 2]);
  assert.strictEqual((await client.query("SELECT pg_backend_pid() AS n")).rows[0].n, client.processID);
  const heard = new Promise((resolve) => client.once("notification", resolve));
  await client.query("LISTEN news");
  await client.query("NOTIFY news, 'hello'");
  const { processId, payload } = await heard;
  assert.deepStrictEqual([processId, payload], [client.processID, "hello"]);
  await assert.rejects(client.query("SET ROLE above"), (e) => e.code === "42501" && /durward: refused/.test(e.message));
  await client.query("BEGIN");
  await client.query("INSERT INTO t VALUES (80000, 'é€😀')");
  assert.strictEqual((await client.query("SELECT a FROM t WHERE id = 80000")).rows[0].a, "é€😀");
  await client.query("ROLLBACK");
  await client.end();
  const pool = new Pool({ host, database: "orders", user: "x", password: "placeholder", max: 4 });
  const all = await Promise.all([...Array(40).keys()].map((i) => pool.query("SELECT $1::int AS n", [i])));
  assert.deepStrictEqual(all.map((r) => r.rows[0].n), [...Array(40).keys()]);
  await pool.end();
}

async function js() {
  const sql = postgres({ host, database: "orders", user: "x", password: "placeholder", max: 2 });
  assert.strictEqual((await sql`SELECT a FROM t WHERE id = ${7}`)[0].a, "row 7");
  const rows = await sql`SELECT id FROM t WHERE id = ANY(${[1, 2, 3]}) ORDER BY id`;
  assert.deepStrictEqual(rows.map((r) => r.id), [1, 2, 3]);
  let n = 0;
  await sql`SELECT id FROM t ORDER BY id`.cursor(100, (some) => { n += some.length; });
  assert.strictEqual(n, 1000);
  await assert.rejects(sql.begin(async (tx) => {
    await tx`INSERT INTO t VALUES (80001, 'x')`;
    throw new Error("back");
  }), /back/);
  assert.strictEqual((await sql`SELECT count(*)::int AS n FROM t WHERE id = 80001`)[0].n, 0);
  const slow = sql`SELECT pg_sleep(20)`;
  setTimeout(() => slow.cancel(), 500);
  await assert.rejects(slow, (e) => e.code === "57014");
  await sql.end();
}

pg().then(js).then(() => console.log("ok"), (e) => { console.error(e); process.exit(1); });
