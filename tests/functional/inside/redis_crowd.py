"""Commands whose last keys come late: N connections that each send MSET with a key, a value of 900 kB and no end, and then go on,
half of them with a key that the rule has, half with another. argv: host, N.
-> JSON: what became of the second half ("refused" in its place, or "ended"), sorted, and of the first."""
import json
import socket
import sys

VALUE = b"v" * 900000


def main():
    ends, asked = [], int(sys.argv[2])
    for i in range(asked):
        s = socket.create_connection((sys.argv[1], 6379), 30)
        s.sendall(b"*1\r\n$4\r\nPING\r\n")
        if s.recv(7) != b"+PONG\r\n":
            raise SystemExit("no session")
        s.sendall(b"*5\r\n$4\r\nMSET\r\n$5\r\njob:1\r\n$900000\r\n" + VALUE)
        ends.append(s)
    said = []
    for i, s in enumerate(ends):
        key = b"job:2" if i % 2 else b"other"
        try:
            s.sendall(b"\r\n$5\r\n%s\r\n$1\r\nx\r\n*1\r\n$4\r\nPING\r\n" % key)
            came = b""
            while not came.endswith(b"+PONG\r\n"):
                more = s.recv(4096)
                if not more:
                    break
                came += more
        except OSError:
            came = b""
        s.close()
        said.append("OK" if came == b"+OK\r\n+PONG\r\n" else "refused" if b"NOPERM" in came and came.endswith(b"+PONG\r\n") else "ended")
    held = sorted(said[::2], reverse=True)
    print(json.dumps({"held": held, "n_held": held.count("refused"), "good": said[1::2]}))


main()
