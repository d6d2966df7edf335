"""An origin that speaks HTTP/2 in clear by prior knowledge alone: it echoes what it was asked, as shapes.echo does, and
keeps it. What does not begin with the preface is counted and closed; .first has what each connection began with."""
import hashlib
import json
import socket
import threading

from . import h2, h2_frames
from .accepting import accepting


class Asked:
    """What shapes and tests look at in harness.origin.Request."""

    def __init__(self, fields):
        self.headers = [(n, v) for n, v in fields if not n.startswith(":")]
        self.said = dict(fields)
        self.method, self.target = self.said[":method"], self.said[":path"]
        self.path, _, self.query = self.target.partition("?")
        self.body, self.complete, self.time = b"", False, 0

    def get(self, name, default=None):
        return next((v for n, v in self.headers if n == name), default)


class ClearOrigin:
    def __init__(self, test, host):
        self.names, self.requests, self.first, self.others, self.accepted = [host], [], [], 0, 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        test.cleanup(self.listener.close)
        accepting(self.listener, self._serve)

    def _serve(self, sock):
        with self.lock:
            self.accepted += 1
        try:
            sock.settimeout(30)
            peer = h2_frames.Peer(sock, 0)
            first = peer.exact(len(h2.PREFACE))
            with self.lock:
                self.first.append(first)
                self.others += first != h2.PREFACE
            if first == h2.PREFACE:
                self._speak(peer)
        except OSError:
            pass
        finally:
            sock.close()

    def _speak(self, peer):
        decoder, under_way = h2.hpack.Decoder(), {}
        peer.send(h2_frames.frame(h2_frames.SETTINGS))
        while True:
            kind, flags, stream, body = peer.read()
            if kind == h2_frames.SETTINGS and not flags & h2_frames.ACK:
                peer.send(h2_frames.frame(h2_frames.SETTINGS, h2_frames.ACK))
            elif kind == h2_frames.HEADERS:
                q = under_way[stream] = Asked(decoder.decode(body))
                with self.lock:
                    self.requests.append(q)
            elif kind == h2_frames.DATA and stream in under_way:
                under_way[stream].body += body
                for s in (0, stream) if body else ():
                    peer.send(h2_frames.frame(h2_frames.WINDOW_UPDATE, 0, s, len(body).to_bytes(4, "big")))
            if kind in (h2_frames.HEADERS, h2_frames.DATA) and flags & h2_frames.END_STREAM:
                self._answer(peer, stream, under_way.pop(stream))

    @staticmethod
    def _answer(peer, stream, q):
        q.complete = True
        said = json.dumps({"method": q.method, "target": q.target, "scheme": q.said[":scheme"],
                           "authority": q.said[":authority"], "headers": q.headers, "length": len(q.body),
                           "sha256": hashlib.sha256(q.body).hexdigest()}).encode()
        peer.send(h2_frames.head(stream, 200, [("content-type", "application/json")]) +
                  h2_frames.frame(h2_frames.DATA, 0, stream, said) +
                  h2_frames.frame(h2_frames.HEADERS, h2_frames.END_HEADERS | h2_frames.END_STREAM, stream,
                                  h2_frames.block(("x-sum", "%d" % len(said)))))
