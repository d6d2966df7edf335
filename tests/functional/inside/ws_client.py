"""A WebSocket client on the `websockets` library. argv: URL BIG(bytes). Prints one JSON line."""
import asyncio
import hashlib
import json
import sys

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

URL, BIG = sys.argv[1], int(sys.argv[2])
BLOCK = bytes(range(256)) * 256
out = {}


async def fragments(parts):
    for p in parts:
        yield p
        await asyncio.sleep(0)


async def basics():
    async with connect(URL, subprotocols=["chat.v0", "chat.v1"], max_size=None) as ws:
        out["protocol"] = ws.subprotocol
        out["extensions"] = ws.response.headers.get("Sec-WebSocket-Extensions")
        await ws.send("zażółć gęślą jaźń")
        out["text"] = await ws.recv()
        await ws.send(BLOCK)
        out["binary"] = await ws.recv() == BLOCK
        await ws.send(fragments(["frag", "", "men", "ted \u20ac"]))
        out["fragmented"] = await ws.recv()
        await ws.send("")
        out["empty"] = await ws.recv()
        out["pong"] = (await (await ws.ping(b"are you there"))) >= 0
        await ws.send("ping here")
        out["pinged"] = await ws.recv()
        out["small"] = 0
        for i in range(300):
            await ws.send(str(i))
            out["small"] += await ws.recv() == str(i)
        await ws.close(4001, "done here")
        out["closed"] = [ws.close_code, ws.close_reason]


async def closed_by_server():
    async with connect(URL) as ws:
        out["no_protocol"] = ws.subprotocol
        await ws.send("close 4002 go away")
        try:
            await ws.recv()
        except ConnectionClosed as e:
            out["server_closed"] = [e.rcvd.code, e.rcvd.reason]
    async with connect(URL) as ws:
        await ws.send("end")
        try:
            await ws.recv()
        except ConnectionClosed as e:
            out["cut"] = e.rcvd is None


async def reflect():
    async with connect(URL) as ws:
        await ws.send("reflect")
        out["reflected"] = await ws.recv()


async def big():
    async with connect(URL, max_size=None) as ws:
        await ws.send("sum")
        await ws.send(fragments([BLOCK] * (BIG // len(BLOCK))))
        want = hashlib.sha256(BLOCK * (BIG // len(BLOCK))).hexdigest()
        out["big_up"] = await ws.recv() == want
        await ws.send("big %d" % BIG)
        got = await ws.recv()
        out["big_down"] = len(got) == BIG and got == b"\xa5" * BIG


async def one(n):
    async with connect(URL) as ws:
        for i in range(20):
            await ws.send("%d-%d" % (n, i))
            if await ws.recv() != "%d-%d" % (n, i):
                return False
    return True


async def main():
    try:
        await basics()
        await closed_by_server()
        await reflect()
        if BIG:
            await big()
        out["many"] = sum(await asyncio.gather(*[one(n) for n in range(20)]))
    except InvalidStatus as e:
        out["refused"] = [e.response.status_code, e.response.headers.get("Durward-Denied")]
    print(json.dumps(out))


asyncio.run(main())
