#!/usr/bin/python3
"""gRPC on grpcio: each kind of call, errors, deadlines, cancelling. argv: HOST, or HOST:PORT in clear. Prints one
JSON line, as the Go client does."""
import hashlib
import json
import os
import sys
import time
from concurrent import futures

import grpc

HOST, BIG = sys.argv[1], 8 << 20
BLOCK = bytes(range(256)) * 1024
META = (("x-mark", "one"), ("x-mark-bin", b"\x00\xfe"))
TOKEN = os.environ.get("OPENAI_API_KEY")
out = {}
OPTIONS = [("grpc.max_receive_message_length", 64 << 20), ("grpc.enable_retries", 0)]
channel = grpc.insecure_channel(HOST, options=OPTIONS) if ":" in HOST else \
    grpc.secure_channel(HOST + ":443", grpc.ssl_channel_credentials(), options=OPTIONS)


def name(x):
    return "/durward.test.Door/" + x


def unary(method, request, **kw):
    return channel.unary_unary(name(method))(request, timeout=kw.pop("timeout", 20), **kw)


def reflect():
    meta = (("authorization", "Bearer " + TOKEN),) if TOKEN and "keyed" in HOST else ()
    out["reflect"] = unary("Reflect", b"", metadata=meta).decode()


def main():
    reply, call = channel.unary_unary(name("Unary")).with_call(b"hello", metadata=META, timeout=20)
    first, last = dict(call.initial_metadata()), dict(call.trailing_metadata())
    out["unary"] = reply.decode()
    out["first"], out["last"] = first.get("x-first"), last.get("x-last")
    out["binary"] = last.get("x-last-bin", b"").hex()
    out["empty"] = unary("Unary", b"") == b""
    big = BLOCK * (BIG // len(BLOCK))
    out["big"] = unary("Unary", big) == big
    times, got = [], 0
    for i, m in enumerate(channel.unary_stream(name("Server"))(b"20", timeout=20)):
        got += m == b"message %d" % i
        times.append(time.monotonic())
    out["server"], out["spread"] = got, times[-1] - times[0]
    answer = channel.stream_unary(name("Client"))((BLOCK for _ in range(40)), timeout=20)
    out["client"] = answer.decode() == "40 %d %s" % (
        40 * len(BLOCK), hashlib.sha256(BLOCK * 40).hexdigest())
    out["bidi"] = bidi()
    try:
        unary("Fail", b"x")
    except grpc.RpcError as e:
        out["fail"] = [e.code().name, e.details(), dict(e.trailing_metadata()).get("x-last")]
    began = time.monotonic()
    try:
        list(channel.unary_stream(name("Wait"))(b"", timeout=0.7))
    except grpc.RpcError as e:
        out["deadline"] = [e.code().name, time.monotonic() - began < 3]
    waiting = channel.unary_stream(name("Wait"))(b"", timeout=20)
    out["cancel"] = next(iter(waiting)).decode()
    waiting.cancel()
    try:
        next(iter(waiting))
    except grpc.RpcError as e:
        out["cancelled"] = e.code().name
    reflect()
    with futures.ThreadPoolExecutor(50) as pool:
        texts = [b"%d" % i for i in range(200)]
        out["many"] = sum(a == b for a, b in zip(pool.map(lambda x: unary("Unary", x), texts), texts))
    try:
        channel.unary_unary("/durward.test.Closed/Unary")(b"", timeout=20)
    except grpc.RpcError as e:
        out["denied"] = e.code().name


def bidi():
    """Each is asked only after the one before was answered."""
    import queue
    asked, good = queue.SimpleQueue(), 0
    answers = channel.stream_stream(name("Bidi"))(iter(asked.get, None), timeout=20)
    for i in range(50):
        asked.put(b"ask %d" % i)
        good += next(answers) == b"ask %d" % i
    asked.put(None)
    return good if next(answers, None) is None else -1


reflect() if sys.argv[2:] == ["reflect"] else main()
print(json.dumps(out))
