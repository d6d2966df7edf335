"""The origin that a client of MCP sees: TLS and the credential are ours, all else is that of a server on loopback."""
import contextlib
import http.client
import select
import socket
import threading

KEPT = ("content-type", "mcp-session-id", "allow")
OURS = ("host", "authorization", "connection", "transfer-encoding", "content-length")


@contextlib.contextmanager
def leaving(asked, answering):
    """While a reply is passed on: who asked for it may leave, and then who answers is left as well."""
    ours, theirs = socket.socketpair()

    def watch():
        if asked in select.select([asked, theirs], [], [])[0]:
            with contextlib.suppress(OSError):
                answering.shutdown(socket.SHUT_RDWR)
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ours.close()
        thread.join()
        theirs.close()


def relay(port, login=False):
    """port: a number, or what says it. login: the server has its own, and its word about that and where it leads go along."""
    kept = KEPT + (("www-authenticate", "location") if login else ())
    ours = tuple(n for n in OURS if n != "authorization") if login else OURS

    def handler(req, conn):
        up = http.client.HTTPConnection("localhost", port() if callable(port) else port)
        fields = {n: v for n, v in req.headers if n.lower() not in ours}
        up.request(req.method, req.target, req.body or None, fields)
        with leaving(conn.sock, up.sock):
            answer(up.getresponse(), conn)

    def answer(r, conn):
        keep = [(n, v) for n, v in r.getheaders() if n.lower() in kept]
        if r.status in (202, 204):
            conn.head(r.status, keep + [("Content-Length", "0")] if r.status == 202 else keep)
            return
        conn.head(r.status, keep + [("Transfer-Encoding", "chunked")])
        while True:
            try:
                piece = r.read1(65536)
            except (http.client.HTTPException, OSError):  # the server ended
                return
            conn.chunk(piece)
            if not piece:
                return
    return handler
