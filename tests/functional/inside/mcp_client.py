"""The official Python SDK as a client: URL MODE. What came of each step, as JSON."""
import json
import sys

import anyio
from mcp.client.client import Client
from mcp.client.sse import sse_client


async def step(said, name, fn):
    try:
        said[name] = await fn()
    except Exception as e:  # what the SDK makes of an answer is what is asked
        said[name] = "%s: %s" % (type(e).__name__, e)


def text(result):
    return [result.is_error, result.content[0].text]


async def main(url, mode):
    said, progress = {}, []

    async def heard(done, total, message):
        progress.append(done)

    async with Client(sse_client(url) if url.endswith("/sse") else url, mode=mode) as c:
        said["version"] = str(c.protocol_version) if hasattr(c, "protocol_version") else ""

        async def tools():
            return sorted(x.name for x in (await c.list_tools()).tools)

        async def call(name, **arguments):
            return text(await c.call_tool(name, arguments))
        await step(said, "tools", tools)
        await step(said, "add", lambda: call("add", a=2, b=3))
        await step(said, "remove", lambda: call("remove", path="/x"))
        await step(said, "again", lambda: call("add", a=20, b=3))
        await step(said, "deploy", lambda: call("deploy", where="there"))

        async def slow():
            r = await c.call_tool("slow", {"steps": 5}, progress_callback=heard)
            return [text(r)[1], len(progress)]
        await step(said, "slow", slow)

        async def read():
            return (await c.read_resource("docs://one")).contents[0].text
        await step(said, "read", read)
        await step(said, "count", lambda: call("count"))
    print(json.dumps(said))


anyio.run(main, *sys.argv[1:3])
