"""The origin that a client of MCP sees: TLS and the credential are ours, all else is that of a server on loopback."""
import http.client

KEPT = ("content-type", "mcp-session-id", "allow")
OURS = ("host", "authorization", "connection", "transfer-encoding", "content-length")


def relay(port, login=False):
    """login: the server has its own, and its word about that and where it leads go along."""
    kept = KEPT + (("www-authenticate", "location") if login else ())
    ours = tuple(n for n in OURS if n != "authorization") if login else OURS

    def handler(req, conn):
        up = http.client.HTTPConnection("127.0.0.1", port)
        fields = {n: v for n, v in req.headers if n.lower() not in ours}
        up.request(req.method, req.target, req.body or None, fields)
        r = up.getresponse()
        keep = [(n, v) for n, v in r.getheaders() if n.lower() in kept]
        if r.status in (202, 204):
            conn.head(r.status, keep + [("Content-Length", "0")] if r.status == 202 else keep)
            return
        conn.head(r.status, keep + [("Transfer-Encoding", "chunked")])
        while True:
            try:
                piece = r.read1(65536)
            except http.client.HTTPException:  # the server ended
                return
            conn.chunk(piece)
            if not piece:
                return
    return handler
