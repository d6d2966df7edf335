"""LangChain's adapters for MCP as a client: URL. What came of each step, as JSON; each call has a session of its own."""
import json
import sys

import anyio
from langchain_mcp_adapters.client import MultiServerMCPClient


async def step(said, name, fn):
    try:
        said[name] = await fn()
    except Exception as e:  # what the adapters make of an answer is what is asked
        while isinstance(e, ExceptionGroup):
            e = e.exceptions[0]
        said[name] = "%s: %s" % (type(e).__name__, e)


async def main(url):
    said = {}
    client = MultiServerMCPClient({"double": {"url": url, "transport": "sse" if url.endswith("/sse") else "streamable_http"}})
    tools = {}

    async def listed():
        tools.update({x.name: x for x in await client.get_tools()})
        return sorted(tools)

    async def call(name, **arguments):
        if name in tools:
            answer = await tools[name].ainvoke({"type": "tool_call", "id": "c", "name": name, "args": arguments})
            return [answer.status == "error", answer.content[0]["text"]]
        async with client.session("double") as session:  # one that is not listed
            answer = await session.call_tool(name, arguments)
            return [answer.isError, answer.content[0].text]
    await step(said, "tools", listed)
    await step(said, "add", lambda: call("add", a=2, b=3))
    await step(said, "remove", lambda: call("remove", path="/x"))
    await step(said, "again", lambda: call("add", a=20, b=3))
    await step(said, "deploy", lambda: call("deploy", where="there"))
    await step(said, "slow", lambda: call("slow", steps=5))

    async def read():
        return (await client.get_resources("double", uris="docs://one"))[0].as_string()
    await step(said, "read", read)
    await step(said, "count", lambda: call("count"))
    print(json.dumps(said))


anyio.run(main, sys.argv[1])
