"""A server of the official Python SDK at 127.0.0.1:PORT, which it prints: over Streamable HTTP, or with `sse` over HTTP+SSE."""
import sys
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field

server = MCPServer("double")
called = []


@server.tool()
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@server.tool()
def remove(path: str) -> str:
    """Must not be called."""
    called.append(path)
    return "removed"


@server.tool()
def deploy(where: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Where"})]) -> str:
    """Somebody is asked first; clients of 2026-07-28 repeat the argument in a field of the request."""
    return "deployed to " + where


@server.tool()
async def slow(steps: int, ctx: Context) -> str:
    """Says how far it is."""
    for i in range(steps):
        await ctx.report_progress(i, steps)
    return "done"


@server.tool()
def count() -> int:
    """How often `remove` was called."""
    return len(called)


@server.resource("docs://one")
def one() -> str:
    return "first"


class Ready(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)


app = server.sse_app() if "sse" in sys.argv else server.streamable_http_app(json_response="json" in sys.argv)
Ready(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning")).run()
