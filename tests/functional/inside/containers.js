// Testcontainers' example for Node: Redis and PostgreSQL, as inside/containers.py.
const { PostgreSqlContainer } = require("@testcontainers/postgresql");
const { RedisContainer } = require("@testcontainers/redis");
const { createClient } = require("redis");
const { Client } = require("pg");

async function asks(container) {
    for (const url of ["https://deps.example.com/node", "https://evil.example.com/"]) {
        const { output, exitCode } = await container.exec(["curl", "-sS", "-m", "5", url]);
        console.log(exitCode, output);
    }
}

(async () => {
    const redis = await new RedisContainer("localhost/redis:1").start();
    const client = createClient({ url: redis.getConnectionUrl() });
    await client.connect();
    await client.set("key", "value");
    console.log("redis", await client.get("key"));
    client.destroy();
    await redis.stop();
    const postgres = await new PostgreSqlContainer("localhost/postgres:1").start();
    const sql = new Client({ connectionString: postgres.getConnectionUri() });
    await sql.connect();
    console.log("postgres", (await sql.query("select version()")).rows[0].version);
    await sql.end();
    await asks(postgres);
    await postgres.stop();
})().catch(e => { console.error(e); process.exit(1); });
