"""Speaks to a mail server as it is told. argv: host, port; stdin: JSON, a list of [what to send, how many replies to
read then, what the reply before it must begin with]; where it does not, it is over. -> JSON, the replies as texts; "end"
where the server had ended."""
import json
import socket
import sys


def reply(f):
    said = ""
    while True:
        line = f.readline().decode("latin-1")
        if not line:
            return said + "end"
        said += line
        if line[3:4] != "-":
            return said.rstrip("\r\n")


def main():
    host, port = sys.argv[1], int(sys.argv[2])
    got = []
    with socket.create_connection((host, port), 20) as s, s.makefile("rb") as f:
        s.settimeout(20)
        got.append(reply(f))
        for send, n, wanted in json.load(sys.stdin):
            if not got[-1].startswith(wanted):
                break
            try:
                s.sendall(send.encode("latin-1"))
                got += [reply(f) for _ in range(n)]
            except ConnectionError:
                got.append("end")
    print(json.dumps(got))


main()
