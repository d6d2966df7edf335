"""What the conformance suite takes for a client: says at SOCKET which URL it was given, and ends as it is told to."""
import socket
import sys

with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.sendall(sys.argv[-1].encode() + b"\n")
    said = s.makefile().readline()
sys.exit(int(said or 1))
