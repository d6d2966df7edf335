#!/usr/bin/python3 -B
"""F9: No input costs more than ten times the processor time or the heap of a benign one of its size: every
fuzz target over its corpus, each file also repeated to 4 and 32 KiB. A benign input's cost is taken to
grow with its size from what the named one costs; its heap is at least that size."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(TESTS, "functional"))
from harness import durward, tap  # noqa: E402

BENIGN = {"archive": "image", "asked": "list", "authority": "name", "aws": "header", "chunks": "trailers",
          "client_hello": "openssl", "config": "example.yaml", "dns": "a", "graphql": "01",
          "h2_reply": "whole", "h2_request": "get", "injector_channel": "plain", "ipc_msg": "mixed",
          "journal": "exchange", "mint_request": "name", "inspect": "01", "nflog": "v4-udp", "trunk": "open", "oidc": "token", "fleet_note": "sealed",
          "path": "seed-13", "placeholder": "openai", "proposal": "whole", "push": "update", "reply_head": "ok",
          "request_head": "put", "scrub": "forms", "socks5": "name", "token": "payload",
          "websocket": "hello", "aws_chunks": "plain", "captured": "json", "log_index": "q0", "signed": "signature",
          "tls_text": "tls13_256", "placement_slots": "form", "policy_image": "all", "override": "form", "repair": "ok", "target": "plain",
          "view_name": "plain", "ssh": "login", "postgres": "extended", "redis": "pipeline", "mysql": "commands", "smtp": "text", "imap": "commands", "scram": "text", "statement": "begin", "mcp_reply": "plain", "mcp_stream": "endpoint", "stdio_mcp": "batch", "llm_call": "chat", "llm_reply": "chat", "llm_session": "create", "llm_usage": "events", "detect": "form", "guide_mcp": "list", "sftp": "write", "scp": "take",
          "login": "challenge", "fleet_head": "seen"}
FACTOR, NOISE_NS, PAGE = 10, 3000, 4096
SIZES = (4096, 32768)


def programs():
    return os.environ.get("DURWARD_FUZZ", os.path.join(os.path.dirname(TESTS), "build", "tests", "fuzz"))


def corpus(t, name):
    """The corpus and what grows of it."""
    to = t.mkdir(name)
    folder = os.path.join(TESTS, "corpus", name)
    for file in sorted(os.listdir(folder)):
        with open(os.path.join(folder, file), "rb") as f:
            data = f.read()
        t.write(os.path.join(name, file), data)
        for size in SIZES if data else ():
            t.write(os.path.join(name, "%s-%d" % (file, size)), (data * (size // len(data) + 1))[:size])
    return to


def measure(t, name):
    r = subprocess.run([os.path.join(programs(), "fuzz_" + name), "--cost", corpus(t, name)],
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100)
    rows = [line.split(" ") for line in r.stdout.decode().splitlines()]
    costs = {row[0]: tuple(map(int, row[1:])) for row in rows if len(row) == 4}
    size, ns, heap = costs[BENIGN[name]]
    worst = {"time": (0, ""), "heap": (0, "")}
    for file, (n, n_ns, n_heap) in costs.items():
        scale = max(1, n / max(1, size))
        for what, got, base in (("time", n_ns, ns * scale + NOISE_NS / FACTOR),
                                ("heap", n_heap, max(heap * scale, n) + PAGE)):
            worst[what] = max(worst[what], (got / base, "%s (%d bytes)" % (file, n)))
    t.ok(r.returncode == 0 and all(w[0] <= FACTOR for w in worst.values()),
         "%s: %d inputs, at most %.1f times the time and %.1f times the heap of a benign one" % (
             name, len(costs), worst["time"][0], worst["heap"][0]), str(worst), str(costs[BENIGN[name]]),
         r.stderr)


def main(t):
    if durward.sanitized():
        raise tap.Skip("a sanitizer's own allocator and checks are what would be measured")
    names = sorted(os.listdir(os.path.join(TESTS, "corpus")))
    t.eq(sorted(BENIGN), names, "each corpus has a benign input named")
    for name in names:
        t.part(measure, t, name)


tap.run(main, timeout=200)
