"""A WebSocket server over HTTP/2 (RFC 8441), hypercorn. argv: CERT KEY. First line: {"port": N}; then a
line for each connection at its beginning and at its end. A text message asks for what it asks
websocket_server.py for, as far as ASGI can: sum, big, close, reflect. GET / is answered 200."""
import asyncio
import hashlib
import json
import socket
import sys

from hypercorn.asyncio import serve
from hypercorn.config import Config


def say(**line):
    print(json.dumps(line), flush=True)


async def http(send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def obey(text, receive, send, headers):
    """-> False when the socket is closed"""
    word, _, rest = text.partition(" ")
    if word == "sum":
        got = await receive()
        await send({"type": "websocket.send", "text": hashlib.sha256(got["bytes"]).hexdigest()})
    elif word == "big":
        await send({"type": "websocket.send", "bytes": b"\xa5" * int(rest)})
    elif word == "close":
        code, _, reason = rest.partition(" ")
        await send({"type": "websocket.close", "code": int(code), "reason": reason})
        return False
    elif word == "reflect":
        await send({"type": "websocket.send", "text": headers.get("authorization", "none")})
    else:
        await send({"type": "websocket.send", "text": text})
    return True


async def talk(receive, send, headers):
    while True:
        got = await receive()
        if got["type"] == "websocket.disconnect":
            return got.get("code")
        if got.get("text") is None:
            await send({"type": "websocket.send", "bytes": got["bytes"]})
        elif not await obey(got["text"], receive, send, headers):
            return None


async def app(scope, receive, send):
    if scope["type"] == "http":
        await http(send)
        return
    if scope["type"] != "websocket":
        return
    headers = {n.decode(): v.decode("latin-1") for n, v in scope["headers"]}
    await receive()
    asked = scope["subprotocols"]
    say(event="open", path=scope["path"], version=scope["http_version"],
        authorization=headers.get("authorization"), offered=headers.get("sec-websocket-extensions"),
        key=headers.get("sec-websocket-key"))
    await send({"type": "websocket.accept",
                "subprotocol": "chat.v1" if "chat.v1" in asked else None})
    say(event="close", code=await talk(receive, send, headers))


async def main():
    listening = socket.create_server(("127.0.0.1", 0), backlog=128)
    config = Config()
    config.bind = ["fd://%d" % listening.fileno()]
    config.certfile, config.keyfile = sys.argv[1], sys.argv[2]
    config.alpn_protocols = ["h2", "http/1.1"]
    config.websocket_max_message_size = 64 << 20
    config.loglevel = "error"
    say(port=listening.getsockname()[1])
    await serve(app, config, shutdown_trigger=asyncio.get_running_loop().create_future)


asyncio.run(main())
