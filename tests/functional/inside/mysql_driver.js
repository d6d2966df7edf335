// mysql2 as programs use it. argv: host. Says "ok".
const assert = require("assert");
const mysql = require("mysql2/promise");

async function main() {
  const options = { host: process.argv[2], user: "anybody", password: "placeholder", database: "orders", charset: "utf8mb4" };
  const c = await mysql.createConnection(options);
  assert.strictEqual((await c.query("SELECT a FROM t WHERE id = ?", [3]))[0][0].a, "row 3");
  assert.strictEqual((await c.execute("SELECT a FROM t WHERE id = ?", [4]))[0][0].a, "row 4");
  assert.strictEqual((await c.execute("SELECT a FROM t WHERE id = ?", [5]))[0][0].a, "row 5");
  await c.beginTransaction();
  await c.execute("INSERT INTO t VALUES (?, ?)", [80000, "Grüße 💶 'it''s' \\"]);
  assert.strictEqual((await c.query("SELECT a FROM t WHERE id = 80000"))[0][0].a, "Grüße 💶 'it''s' \\");
  await c.rollback();
  await assert.rejects(c.query("SELECT * FROM other.secret"), (e) => e.errno === 1142 && /durward: refused/.test(e.message));
  await assert.rejects(c.execute("SHOW GRANTS"), (e) => e.errno === 1142);
  await assert.rejects(c.query("SELECT nothing FROM t"), (e) => e.errno === 1054);
  let n = 0;
  await new Promise((resolve, reject) => c.connection.query("SELECT id FROM t ORDER BY id").stream()
    .on("data", () => { n += 1; }).on("end", resolve).on("error", reject));
  assert.strictEqual(n, 1000);
  await c.ping();
  await c.end();
  const pool = mysql.createPool(Object.assign({ connectionLimit: 4 }, options));
  const all = await Promise.all([...Array(40).keys()].map((i) => pool.execute("SELECT CAST(? AS SIGNED) AS n", [i])));
  assert.deepStrictEqual(all.map(([rows]) => rows[0].n), [...Array(40).keys()]);
  await pool.end();
  const tls = await mysql.createConnection(Object.assign({ ssl: { ca: require("fs").readFileSync(process.env.SSL_CERT_FILE) } }, options));
  assert.strictEqual((await tls.query("SELECT 6 AS n"))[0][0].n, 6);
  await tls.end();
  console.log("ok");
}

main().catch((e) => { console.error(e); process.exit(1); });
