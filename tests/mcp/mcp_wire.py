"""A plugin of pytest for the tests of MCP's SDK for Python. As published, their clients call their servers within one
process (httpx2's ASGITransport, the suite's StreamingASGITransport, httpx2's MockTransport). Here each such server stands on
a UNIX socket in MCP_WIRE_DIR and its client speaks HTTP with it: over that socket (MCP_WIRE=socket), or as
https://aN.suite.example.com (MCP_WIRE=inside), behind which somebody else leads to aN.sock. With MCP_WIRE=published nothing
is changed. In each case MCP_WIRE_SAID gets, for each test, its outcome, why, how many requests it made, and which refusals of ours it had.

What a test sees stays its own: the server sees the URL that the test's client asked for, and the test its own request."""
import asyncio
import collections
import json
import os
import socket
import ssl

import httpx2
import pytest
import sniffio
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

MODE, DIR, SAID = os.environ["MCP_WIRE"], os.environ.get("MCP_WIRE_DIR", ""), os.environ["MCP_WIRE_SAID"]
LABELS = int(os.environ.get("MCP_WIRE_LABELS", "64"))
TLS = ssl.create_default_context()
free = collections.deque(range(LABELS))
asked, refused = collections.Counter(), collections.defaultdict(set)
now = {"test": ""}
said = {}
alive, listening = set(), {}


# ---- a server ----

def listens(number):
    """Made before any test runs, which may not touch a file in its loop (blockbuster)."""
    path = os.path.join(DIR, "a%d.sock" % number)
    if os.path.exists(path):
        os.unlink(path)
    s = socket.socket(socket.AF_UNIX if MODE == "inside" else socket.AF_INET)
    s.bind(path if MODE == "inside" else ("127.0.0.1", 0))
    s.listen(128)
    s.setblocking(False)
    return s


class Served:
    """An application at one origin (scheme, host, port) that the tests' client calls by it."""

    def __init__(self, app, url, client, root):
        self.app, self.url, self.client, self.root = app, url, client, root
        self.number = free.popleft()
        self.name = "a%d.suite.example.com" % self.number if MODE == "inside" else "127.0.0.1:%d" % listening[self.number].getsockname()[1]
        self.state = ServerState()
        self.server = None

    async def start(self):
        config = uvicorn.Config(self.wrapped, interface="asgi3", lifespan="off", http="h11", ws="none", log_config=None, access_log=False,
                                proxy_headers=False, server_header=False, date_header=False, timeout_keep_alive=60)
        config.load()
        alive.add(self)
        self.server = await asyncio.get_running_loop().create_server(
            lambda: H11Protocol(config=config, server_state=self.state, app_state={}), sock=listening[self.number].dup())

    def host(self):
        return self.url.netloc

    async def wrapped(self, scope, receive, send):
        ours = (b"host", self.name.encode())
        theirs = (b"host", self.host())
        await self.app(dict(scope, scheme=self.url.scheme, server=(self.url.host, self.url.port), client=self.client,
                            root_path=self.root, headers=[theirs if h == ours else h for h in scope["headers"]]), receive, send)

    def drop(self):
        """Without a loop that runs."""
        if self not in alive:
            return
        alive.discard(self)
        if self.server:
            self.server.close()
        for c in list(self.state.connections):
            c.transport.close()
        free.append(self.number)

    async def close(self, cancel):
        if self not in alive:
            return
        self.drop()
        tasks = list(self.state.tasks)
        for task in tasks if cancel else []:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def while_there(receive, work):
    """Until it is done, or the client has left."""
    todo = [asyncio.ensure_future(work), asyncio.ensure_future(receive())]
    done, left = await asyncio.wait(todo, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    for task in done:
        task.result()


async def passed_on(stream, send):
    chunks = stream.__aiter__()
    try:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        if hasattr(chunks, "aclose"):
            await chunks.aclose()
        await stream.aclose()


def of_handler(handler):
    """What answers a MockTransport, as an application."""
    async def app(scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        host = dict(scope["headers"]).get(b"host", b"").decode()
        query = scope["query_string"].decode()
        url = "%s://%s%s%s" % (scope["scheme"], host, scope["raw_path"].decode(), "?" + query if query else "")
        try:
            response = handler(httpx2.Request(scope["method"], url, headers=scope["headers"], content=body))
            response = response if isinstance(response, httpx2.Response) else await response
            await send({"type": "http.response.start", "status": response.status_code, "headers": response.headers.raw})
            await while_there(receive, passed_on(response.stream, send))
        except Exception:
            receive.__self__.transport.abort()  # the connection ends, as a handler's error says that it would
    return app


# ---- a client ----

class Wire:
    """What a transport of the tests is replaced with: an HTTP client, and a server for each origin that it asks."""

    def __init__(self, kept):
        """kept: connections are, since who has this transport closes it."""
        self.served, self.clients, self.lock = {}, {}, asyncio.Lock()
        self.limits = httpx2.Limits() if kept else httpx2.Limits(max_keepalive_connections=0)

    async def ask(self, request, app, client, root):
        origin = (request.url.scheme, request.url.host, request.url.port)
        async with self.lock:
            if origin not in self.served:
                one = Served(app, request.url, client, root)
                await one.start()
                self.served[origin] = one
                self.clients[origin] = httpx2.AsyncHTTPTransport(verify=TLS, limits=self.limits)
        one = self.served[origin]
        target = request.url.raw_path.decode()
        ours = "%s://%s%s" % ("https" if MODE == "inside" else "http", one.name, target)
        fields = [(n, one.name.encode() if n.lower() == b"host" and v == one.host() else v) for n, v in request.headers.raw]
        response = await self.clients[origin].handle_async_request(
            httpx2.Request(request.method, ours, headers=fields, stream=request.stream, extensions=request.extensions))
        if "durward-denied" in response.headers:
            refused[now["test"]].add(response.headers["durward-denied"].split()[0])
        return response

    async def close(self, cancel=True):
        for client in self.clients.values():
            await client.aclose()
        for one in self.served.values():
            await one.close(cancel)
        self.clients, self.served = {}, {}


def counted(function):
    async def handle_async_request(self, request):
        asked[now["test"]] += 1
        return await function(self, request)
    return handle_async_request


def wired(kind, app_of, cancel_of=lambda self: True):
    """Replaces what a class of transports does."""
    plain, leave = kind.handle_async_request, kind.aclose
    if MODE == "published":
        kind.handle_async_request = counted(plain)
        return

    async def handle_async_request(self, request):
        if sniffio.current_async_library() != "asyncio":  # uvicorn's is the only loop of this server
            return await plain(self, request)
        asked[now["test"]] += 1
        if "_wire" not in self.__dict__:
            self._wire = Wire(hasattr(self, "_cancel_on_close"))
        return await self._wire.ask(request, app_of(self), getattr(self, "client", ("127.0.0.1", 1234)), getattr(self, "root_path", ""))

    async def aclose(self):
        if "_wire" in self.__dict__:
            await self._wire.close(cancel_of(self))
        await leave(self)
    kind.handle_async_request, kind.aclose = handle_async_request, aclose


def pytest_configure(config):
    wired(httpx2.ASGITransport, lambda self: self.app)
    wired(httpx2.MockTransport, lambda self: of_handler(self.handler))
    from tests.interaction.transports import _bridge
    bridge = _bridge.StreamingASGITransport
    begin, end = bridge.__aenter__, bridge.__aexit__
    wired(bridge, lambda self: self._app, lambda self: self._cancel_on_close)
    if MODE == "published":
        return
    listening.update({n: listens(n) for n in range(LABELS)})

    async def aexit(self, *why):
        if "_wire" in self.__dict__:
            await self._wire.close(self._cancel_on_close)
        await end(self, *why)
    bridge.__aenter__, bridge.__aexit__ = begin, aexit


# ---- what is said ----

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    now["test"] = item.nodeid
    try:
        return (yield)
    finally:
        for one in list(alive):
            one.drop()


def pytest_runtest_logreport(report):
    was = said.get(report.nodeid)
    if was and was[0] in ("failed", "skipped"):
        return
    if report.when == "call" or report.outcome != "passed":
        outcome = "skipped" if hasattr(report, "wasxfail") else report.outcome
        said[report.nodeid] = (outcome, "" if outcome == "passed" else str(report.longrepr)[-6000:])


def pytest_sessionfinish(session):
    for one in listening.values():
        one.close()
    with open(SAID, "w") as f:
        json.dump({k: [v[0], v[1], asked[k], sorted(refused[k])] for k, v in said.items()}, f)
