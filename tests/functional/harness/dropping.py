"""A socket in front of the daemon's that reads a request and says nothing to the first of them: what a client sees of a
daemon that is started anew."""
import os
import re
import socket
import threading


class Dropping:
    """path: where it listens. asked: requests' first lines, those that were dropped among them."""

    def __init__(self, t, path, to):
        self.path, self.to, self.asked, self.left = path, to, [], 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(16)
        t.cleanup(self.close)
        threading.Thread(target=self._serve, daemon=True).start()

    def drop(self, count):
        self.asked, self.left = [], count

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
            return
        with socket.socket(socket.AF_UNIX) as far:
            far.connect(self.to)
            far.sendall(head)
            piece = far.recv(65536)
            while piece:
                near.sendall(piece)
                piece = far.recv(65536)
