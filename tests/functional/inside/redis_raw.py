"""Sends commands to a Redis server in one pipeline and says what comes back.
argv: host; stdin: JSON, a list of lists of words. -> JSON, a list of replies as [type, text]."""
import json
import socket
import sys


def encode(words):
    said = b"*%d\r\n" % len(words)
    for w in words:
        w = w.encode("latin-1")
        said += b"$%d\r\n%s\r\n" % (len(w), w)
    return said


def reply(f):
    line = f.readline()
    if not line:
        return ["end", ""]
    kind, rest = line[:1].decode(), line[1:-2].decode("latin-1")
    if kind in "$=!" and int(rest) >= 0:
        return [kind, f.read(int(rest) + 2)[:-2].decode("latin-1")]
    if kind in "*~>" and int(rest) >= 0:
        return [kind, [reply(f) for _ in range(int(rest))]]
    if kind == "%":
        return [kind, [reply(f) for _ in range(2 * int(rest))]]
    return [kind, rest]


def main():
    asked = json.load(sys.stdin)
    with socket.create_connection((sys.argv[1], 6379), 20) as s, s.makefile("rb") as f:
        if asked and isinstance(asked[0], str):  # bytes as they are
            s.sendall(asked[0].encode("latin-1"))
            s.shutdown(socket.SHUT_WR) if len(asked) > 1 else None
            print(json.dumps([reply(f)]))
            return
        s.sendall(b"".join(encode(words) for words in asked))
        print(json.dumps([reply(f) for _ in asked]))


main()
