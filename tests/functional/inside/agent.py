#!/usr/bin/python3
"""Runs inside the sandbox: reads one JSON command a line, answers one JSON line."""
import json
import os
import subprocess
import sys


def text(data):
    return data.decode("utf-8", "replace")


def shell(m):
    env = {k: v for k, v in os.environ.items() if k not in m["drop"]}
    env.update(m["env"])
    try:
        r = subprocess.run(["/bin/sh", "-c", m["command"]], env=env, input=m["stdin"].encode(),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=m["timeout"])
        return {"status": r.returncode, "out": text(r.stdout), "err": text(r.stderr)}
    except subprocess.TimeoutExpired as e:
        return {"status": -1, "out": text(e.stdout or b""), "err": "timed out: " +
                text(e.stderr or b"")}


def stream(m, out):
    p = subprocess.Popen(m["argv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while True:
        block = os.read(p.stdout.fileno(), 1 << 16)
        if not block:
            break
        out.write(b"%d\n" % len(block))
        out.write(block)
    out.write(b"0\n")
    err = p.stderr.read()
    return {"status": p.wait(), "err": text(err)}


def main():
    out = sys.stdout.buffer

    def answer(value):
        out.write(json.dumps(value).encode() + b"\n")
        out.flush()

    answer({"ready": True})
    for line in sys.stdin.buffer:
        m = json.loads(line)
        if m["do"] == "sh":
            answer(shell(m))
        elif m["do"] == "stream":
            answer(stream(m, out))
        else:
            answer({"error": "unknown command"})


main()
