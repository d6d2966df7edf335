"""A WebSocket server on the `websockets` library. argv: CERT KEY. First line: {"port": N}; then a line
for each connection at its beginning and at its end. What a text message asks for:
  sum            the next message's SHA-256
  big N          one binary message of N bytes, fragmented
  close C R      close with code C and reason R
  ping P         a ping with that payload, and "ponged" when it was answered
  reflect        the request's Authorization, in fragments of 5 bytes
  end            the TCP connection ends without a close frame
anything else comes back as it is, text or binary."""
import asyncio
import hashlib
import json
import ssl
import sys

from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed


def say(**line):
    print(json.dumps(line), flush=True)


async def obey(ws, text):
    word, _, rest = text.partition(" ")
    if word == "sum":
        await ws.send(hashlib.sha256(await ws.recv()).hexdigest())
    elif word == "big":
        async def parts():
            for _ in range(int(rest) // 65536):
                yield b"\xa5" * 65536
        await ws.send(parts())
    elif word == "close":
        code, _, reason = rest.partition(" ")
        await ws.close(int(code), reason)
    elif word == "ping":
        await (await ws.ping(rest))
        await ws.send("ponged")
    elif word == "reflect":
        value = ws.request.headers.get("Authorization", "none")
        await ws.send([value[i:i + 5] for i in range(0, len(value), 5)])
    elif word == "end":
        ws.transport.abort()
    else:
        await ws.send(text)


async def handler(ws):
    h = ws.request.headers
    say(event="open", path=ws.request.path, authorization=h.get("Authorization"),
        offered=h.get("Sec-WebSocket-Extensions"), protocol=ws.subprotocol,
        key=h.get("Sec-WebSocket-Key"))
    try:
        async for message in ws:
            if isinstance(message, str):
                await obey(ws, message)
            else:
                await ws.send(message)
    except ConnectionClosed:
        pass
    say(event="close", code=ws.close_code, reason=ws.close_reason)


def choose(_connection, offered):
    return next((p for p in ("chat.v2", "chat.v1") if p in offered), None)


async def main():
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ctx.load_cert_chain(sys.argv[1], sys.argv[2])
    async with serve(handler, "127.0.0.1", 0, ssl=ctx, max_size=None,
                     select_subprotocol=choose) as server:
        say(port=server.sockets[0].getsockname()[1])
        await asyncio.get_running_loop().create_future()


asyncio.run(main())
