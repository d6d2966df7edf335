"""What this host hears that nobody in a container should ask."""
import select
import socket
import threading


class Ears:
    """A server on every address, and one for names at 127.0.0.1, both for as long as the test lasts."""

    def __init__(self, t):
        self.heard = []
        self.server = socket.create_server(("", 0))
        self.port = self.server.getsockname()[1]
        self.names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.names.bind(("127.0.0.1", 53))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            for s in select.select([self.server, self.names], [], [])[0]:
                if s is self.names:
                    self.heard.append(s.recv(512))
                    continue
                c, who = s.accept()
                self.heard.append(who[0])
                c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                c.close()
