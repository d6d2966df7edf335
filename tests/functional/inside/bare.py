#!/usr/bin/python3
"""Runs a program as it would run without Durward, in a network namespace where some hosts are test doubles:
listens for each host on an address of its own and for questions of names, hands the sockets to the test and becomes
the program.

bare.py SOCKET COUNT COMMAND...: host number i is 127.1.0.i, port 443."""
import os
import socket
import sys

PORT = 443


def main():
    path, count, argv = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    found = [socket.create_server(("127.1.0.%d" % (i + 1), PORT), backlog=64) for i in range(count)]
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(("127.0.0.1", 53))
    found.append(names)
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        socket.send_fds(s, [b"s"], [x.fileno() for x in found])
        if s.recv(1) != b"g":
            sys.exit("bare.py: the test has gone")
    for x in found:
        x.close()
    os.execvp(argv[0], argv)


main()
