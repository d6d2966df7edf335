"""A gRPC server on grpcio, with TLS; messages are plain bytes. argv: CERT KEY [gzip: pack messages
where the client takes it] [clear: without TLS]. First line: {"port": N}; then a line for each call at its beginning, and one for each that was cancelled.
Methods of durward.test.Door: Unary echoes; Server sends as many messages as the request says, 100
a second from the second on; Client answers with number, bytes and SHA-256; Bidi echoes each at once; Fail ends with
INVALID_ARGUMENT; Wait stands still until it is cancelled; Reflect tells the credential."""
import hashlib
import json
import sys
import threading
import time
from concurrent import futures

import grpc

LOCK = threading.Lock()


def say(**line):
    with LOCK:
        print(json.dumps(line), flush=True)


def begin(name, context):
    meta = dict(context.invocation_metadata())
    say(event="call", method=name, authorization=meta.get("authorization"), mark=meta.get("x-mark"),
        binary=meta.get("x-mark-bin", b"").hex(), left=context.time_remaining())
    context.send_initial_metadata((("x-first", "head"),))
    context.set_trailing_metadata((("x-last", "trailer"), ("x-last-bin", b"\x00\xff\x01")))
    return meta


def unary(request, context):
    begin("Unary", context)
    return request


def server(request, context):
    begin("Server", context)
    for i in range(int(request)):
        if i:
            time.sleep(0.01)
        yield b"message %d" % i


def client(requests, context):
    begin("Client", context)
    digest, n, size = hashlib.sha256(), 0, 0
    for r in requests:
        digest.update(r)
        n, size = n + 1, size + len(r)
    return b"%d %d %s" % (n, size, digest.hexdigest().encode())


def bidi(requests, context):
    begin("Bidi", context)
    for r in requests:
        yield r


def fail(request, context):
    begin("Fail", context)
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no such door: \u20ac 100%")


def wait(request, context):
    begin("Wait", context)
    over = threading.Event()
    context.add_callback(over.set)
    try:
        yield b"waiting"
        over.wait(20)
    finally:  # a call that was given up before this is closed at the yield
        say(event="cancelled", method="Wait", active=context.is_active())


def reflect(request, context):
    meta = begin("Reflect", context)
    return meta.get("authorization", "none").encode()


def main():
    methods = {"Unary": grpc.unary_unary_rpc_method_handler(unary),
               "Server": grpc.unary_stream_rpc_method_handler(server),
               "Client": grpc.stream_unary_rpc_method_handler(client),
               "Bidi": grpc.stream_stream_rpc_method_handler(bidi),
               "Fail": grpc.unary_unary_rpc_method_handler(fail),
               "Wait": grpc.unary_stream_rpc_method_handler(wait),
               "Reflect": grpc.unary_unary_rpc_method_handler(reflect)}
    packing = grpc.Compression.Gzip if "gzip" in sys.argv[3:] else grpc.Compression.NoCompression
    s = grpc.server(futures.ThreadPoolExecutor(32), compression=packing, options=[
        ("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", 64 << 20)])
    s.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("durward.test.Door", methods),))
    with open(sys.argv[1], "rb") as cert, open(sys.argv[2], "rb") as key:
        credentials = grpc.ssl_server_credentials([(key.read(), cert.read())])
    port = s.add_insecure_port("127.0.0.1:0") if "clear" in sys.argv[3:] else s.add_secure_port("127.0.0.1:0", credentials)
    s.start()
    say(port=port)
    s.wait_for_termination()


main()
