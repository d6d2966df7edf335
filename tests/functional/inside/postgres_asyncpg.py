"""asyncpg as programs use it. argv: host. Says "ok"."""
import asyncio
import sys

import asyncpg

options = {"host": sys.argv[1], "database": "orders", "user": "x", "password": "placeholder"}


async def one():
    c = await asyncpg.connect(**options)
    assert await c.fetchval("SELECT a FROM t WHERE id = $1", 3) == "row 3"
    await c.execute("CREATE TEMP TABLE mine (id int, a text)")
    await c.executemany("INSERT INTO mine VALUES ($1, $2)", [(i, "é€😀 %d" % i) for i in range(500)])
    assert await c.copy_records_to_table("mine", records=[(i, "x") for i in range(500, 1000)]) == "COPY 500"
    async with c.transaction():
        assert len([r async for r in c.cursor("SELECT id FROM mine", prefetch=100)]) == 1000
    heard = asyncio.get_running_loop().create_future()
    await c.add_listener("news", lambda *said: heard.set_result(said))
    await c.execute("NOTIFY news, 'hello'")
    assert (await asyncio.wait_for(heard, 10))[1:] == (c.get_server_pid(), "news", "hello")
    assert await c.fetchval("SELECT pg_backend_pid()") == c.get_server_pid()
    for refused in ("SET ROLE above", "DO $$BEGIN NULL; END$$"):
        try:
            await c.execute(refused)
            raise SystemExit("not refused: " + refused)
        except asyncpg.InsufficientPrivilegeError as e:
            assert "durward: refused" in str(e), e
    try:
        await c.execute("SELECT pg_sleep(20)", timeout=0.5)
        raise SystemExit("not cancelled")
    except asyncio.TimeoutError:
        pass
    assert await c.fetchval("SELECT 5") == 5
    await c.close()


async def many():
    async with asyncpg.create_pool(min_size=2, max_size=4, **options) as pool:
        got = await asyncio.gather(*[pool.fetchval("SELECT $1::int", i) for i in range(40)])
        assert got == list(range(40)), got

asyncio.run(one())
asyncio.run(many())
print("ok")
