#!/usr/bin/python3
"""A relay inside the sandbox: argv: port here, host and port there. Each connection is passed on."""
import socket
import sys
import threading


def pump(a, b):
    try:
        while True:
            data = a.recv(65536)
            if not data:
                break
            b.sendall(data)
    except OSError:
        pass
    for s in (a, b):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(client):
    try:
        there = socket.create_connection((sys.argv[2], int(sys.argv[3])), 5)
    except OSError:
        client.close()
        return
    threading.Thread(target=pump, args=(client, there), daemon=True).start()
    pump(there, client)


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
