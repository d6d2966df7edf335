"""Somebody between an SSH client and its server, who has no key. As a program it is a client's ProxyCommand: argv: host, what it
does to what the client says. Tests on the host import relay()."""
import os
import socket
import struct
import sys
import threading

IGNORE, KEXINIT, NEWKEYS = 2, 20, 21


def packet(body):
    pad = 8 - (len(body) + 5) % 8 + 4
    return struct.pack(">IB", len(body) + 1 + pad, pad) + body + b"\0" * pad


class Parts:
    """What one side says, apart: (what, bytes), where what is "greeting", a message's number, or "secret"."""

    def __init__(self):
        self.buffer, self.state = b"", "greeting"

    def of(self, data):
        self.buffer += data
        while self.buffer:
            if self.state == "secret":
                size, what = len(self.buffer), "secret"
            elif self.state == "greeting":
                size, what = self.buffer.find(b"\n") + 1, "greeting"
            else:
                size = 4 + int.from_bytes(self.buffer[:4], "big") if len(self.buffer) > 5 else 0
                what = self.buffer[5] if size else None
            if not 0 < size <= len(self.buffer):
                return
            part, self.buffer = self.buffer[:size], self.buffer[size:]
            self.state = "secret" if what in ("secret", NEWKEYS) else "clear"
            yield what, part


class Doing:
    """What is done to the parts of one side. It is done once."""

    def __init__(self, deed):
        self.deed, self.done, self.passed = deed, False, 0

    def bit(self, data, at):
        """One bit of the byte that is at `at` of all that is enciphered."""
        here = at - self.passed
        self.passed += len(data)
        if self.done or not 0 <= here < len(data):
            return data
        self.done = True
        return data[:here] + bytes([data[here] ^ 1]) + data[here + 1:]

    def to(self, what, part):
        note, place = packet(bytes([IGNORE]) + struct.pack(">I", 4) + b"text"), self.deed
        before = {"before the list": what == KEXINIT, "within the exchange": what not in ("greeting", KEXINIT, NEWKEYS, "secret"),
                  "before the new keys": what == NEWKEYS}
        if before.get(place) and not self.done:
            self.done = True
            return note + part
        if place == "before the new keys" and what == "secret" and not self.passed:  # and what came first is taken out
            self.passed = 1
            return b""
        if place == "another list" and what == KEXINIT:
            return part.replace(b"-v00@openssh.com", b"-v99@openssh.com")
        if place == "a bit at once" and what == "secret":
            return self.bit(part, 20)
        if place == "a bit later" and what == "secret":
            return self.bit(part, 6000)
        if place == "twice" and what == "secret" and not self.done:
            self.done = True
            return part * 2
        return part


def carry(read, write, end, deed):
    parts, doing = Parts(), Doing(deed)
    try:
        for data in iter(lambda: read(65536), b""):
            write(b"".join(doing.to(*p) for p in parts.of(data)))
    except OSError:
        pass
    end()


def relay(near, far, up, down):
    """Two sockets; what is done to what `near` says, and to what `far` does."""
    def end():
        for s in (near, far):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
    for a, b, deed in ((near, far, up), (far, near, down)):
        threading.Thread(target=carry, args=(a.recv, b.sendall, end, deed), daemon=True).start()


def main():
    def out(data):
        while data:
            data = data[os.write(1, data):]
    far = socket.create_connection((sys.argv[1], 22), 20)
    far.settimeout(None)
    threading.Thread(target=carry, args=(lambda n: os.read(0, n), far.sendall, lambda: far.shutdown(socket.SHUT_WR), sys.argv[2]),
                     daemon=True).start()
    carry(far.recv, out, lambda: None, "")


if __name__ == "__main__":
    main()
