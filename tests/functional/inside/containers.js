// Testcontainers' example for Node: Redis and PostgreSQL, as inside/containers.py.
const { GenericContainer, Wait } = require("testcontainers");
const { createClient } = require("redis");
const { Client } = require("pg");

async function asks(container) {
    for (const url of ["https://deps.example.com/node", "https://evil.example.com/"]) {
        const { output, exitCode } = await container.exec(["curl", "-sS", "-m", "5", url]);
        console.log(exitCode, output);
    }
}

(async () => {
    const redis = await new GenericContainer("localhost/redis:1").withNetworkMode("host")
        .withWaitStrategy(Wait.forLogMessage("Ready to accept connections")).start();
    const client = createClient({ url: `redis://${redis.getHost()}:6379` });
    await client.connect();
    await client.set("key", "value");
    console.log("redis", await client.get("key"));
    client.destroy();
    await redis.stop();
    const postgres = await new GenericContainer("localhost/postgres:1").withNetworkMode("host")
        .withEnvironment({ POSTGRES_USER: "test", POSTGRES_PASSWORD: "test", POSTGRES_DB: "test" })
        .withWaitStrategy(Wait.forLogMessage(/database system is ready to accept connections/, 2)).start();
    const sql = new Client({ host: postgres.getHost(), port: 5432, user: "test", password: "test", database: "test" });
    await sql.connect();
    console.log("postgres", (await sql.query("select version()")).rows[0].version);
    await sql.end();
    await asks(postgres);
    await postgres.stop();
})().catch(e => { console.error(e); process.exit(1); });
