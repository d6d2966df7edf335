"""Speaks to a server of mailboxes as it is told. argv: host, port, "tls" or "". stdin: JSON, a list of [what to send, the
beginning of the line that ends its answer]. -> JSON: what was answered to each, the greeting first; "end" where the
server had ended."""
import json
import socket
import ssl
import sys


def answer(f, end):
    said = []
    while not said or not said[-1].startswith(end.encode("latin-1")):
        said.append(f.readline())
        if not said[-1]:
            return b"".join(said).decode("latin-1") + "end"
    return b"".join(said).decode("latin-1")


def main():
    host, port, tls = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "tls"
    s = socket.create_connection((host, port), 20)
    if tls:
        s = ssl.create_default_context().wrap_socket(s, server_hostname=host)
    s.settimeout(20)
    with s, s.makefile("rb") as f:
        got = [answer(f, "* ")]
        for send, end in json.load(sys.stdin):
            if got[-1].endswith("end"):
                break
            try:
                s.sendall(send.encode("latin-1"))
                got.append(answer(f, end))
            except ConnectionError:
                got.append("end")
            except TimeoutError:
                got.append("late")
                break
    print(json.dumps(got))


main()
