"""A socket in front of the daemon's that reads a request and says nothing to the first of them, or that it is too busy, or
nothing at all: what a client sees of a daemon that is started anew, or hangs."""
import os
import re
import socket
import threading


BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 49\r\n\r\n{\"error\":{\"code\":\"unavailable\",\"message\":\"busy\"}}"


class Dropping:
    """path: where it listens. asked: requests' first lines, those that were dropped among them."""

    def __init__(self, t, path, to):
        self.path, self.to, self.asked, self.left, self.way = path, to, [], 0, "close"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(16)
        t.cleanup(self.close)
        threading.Thread(target=self._serve, daemon=True).start()

    def drop(self, count, way="close"):
        """way: close, busy (503) or hang, until the client has gone."""
        self.asked, self.left, self.way = [], count, way

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        os.unlink(self.path)

    def _serve(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._alone, args=(near,), daemon=True).start()

    def _alone(self, near):
        with near:
            try:
                self._one(near)
            except OSError:
                pass  # the client has gone

    def _one(self, near):
        head = b""
        while b"\r\n\r\n" not in head:
            more = near.recv(65536)
            if not more:
                return
            head += more
        length = re.search(rb"(?i)\r\ncontent-length: *([0-9]+)", head)
        whole = head.index(b"\r\n\r\n") + 4 + (int(length[1]) if length else 0)
        while len(head) < whole:
            head += near.recv(65536) or bytes(whole)
        self.asked.append(head.split(b"\r\n", 1)[0].decode())
        if self.left:
            self.left -= 1
            if self.way == "busy":
                near.sendall(BUSY)
            elif self.way == "hang":
                near.recv(1)
            return
        with socket.socket(socket.AF_UNIX) as far:
            far.connect(self.to)
            far.sendall(head)
            piece = far.recv(65536)
            while piece:
                near.sendall(piece)
                piece = far.recv(65536)
