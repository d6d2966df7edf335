"""Origins that send the credential back (C1, C13, C14, C15): the same pages over HTTP/1 and HTTP/2, asked
for over HTTP/1 and HTTP/2. A reply is the origin's, byte for byte, but for the mark."""
import gzip
import lzma
import os
import re
import zlib

from harness import h2, h2_frames, reflections, scan

EVERYTHING = "REFLECT_ALL" in os.environ  # some combinations are tried with it only
OLD, NEW = "old.example.com", "new.example.com"  # the origin speaks HTTP/1, HTTP/2
CODINGS = ("gzip", "br", "deflate", "zstd", "compress", "x-gzip", "GZIP", "gzip, identity", "identity, gzip",
           "x-unknown", "aes128gcm", "dcb")
DATA, HEADERS, END_STREAM, END_HEADERS, PADDED = (
    h2_frames.DATA, h2_frames.HEADERS, h2_frames.END_STREAM, h2_frames.END_HEADERS, h2_frames.PADDED)
END = END_HEADERS | END_STREAM
HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade"}


def secret():
    """Its last byte is not its first: cut short before a whole one, it would be two that overlap."""
    return scan.canary("o/+") + b'"\\<&>\'~ z/' + scan.canary("", 5) + b"e"


def pieces(body, way):
    """How the body is cut for a way that is not one piece. NUMBER: in two, there."""
    if not body:
        return []
    if way.isdigit():
        cut = int(way) % len(body)
        return [p for p in (body[:cut], body[cut:]) if p]
    step = 1 if len(body) < 2000 else len(body) // 37 + 1
    return [body[i:i + step] for i in range(0, len(body), step)]


class Pages:
    """What both origins know. /page/WAY/N: the Nth page; /split/CUT/N: the Nth form in two pieces; /plain/WHAT."""

    def __init__(self, value):
        self.value, self.pages, self.splits = value, reflections.pages(value), reflections.shapes(value)
        self.asked = []  # (credential, fields) of each request

    def find(self, path):
        """-> (way, status, fields, body, trailers)"""
        _, kind, way, number = path.split("?")[0].split("/")
        if kind == "page":
            _, status, fields, body = self.pages[int(number)]
            if way == "trailers":
                return "whole", 200, [], b"{}", [("x-echo", reflections.sent(body))]
            return way, status, [(n, reflections.sent(v)) for n, v in fields], reflections.sent(body), []
        if kind == "split":
            _, before, form, after = self.splits[int(number)]
            return way, 200, [], before + form + after, []
        if kind == "coded":
            data = b"token " + self.value
            body = {"gzip": gzip.compress, "deflate": zlib.compress, "x-unknown": lzma.compress}.get(
                CODINGS[int(number)], lambda x: x[::-1])(data)
            return way, 200, [("Content-Encoding", CODINGS[int(number)].encode())], body, []
        if kind == "part":  # an origin that sends parts unasked
            at = int(number)
            part = (b"x" * 20 + self.value + b"y" * 20)[:20 + at]
            return way, 206, [("Content-Range", b"bytes 0-%d/200" % (len(part) - 1))], part, []
        return "whole", 200, [("Content-Type", b"text/plain")], b"fine", []


class Old:
    """A handler of harness.origin."""

    def __init__(self, pages):
        self.pages = pages

    def __call__(self, req, conn):
        p = self.pages
        p.asked.append((req.get("authorization"), {n.lower(): v for n, v in req.headers}))
        way, status, fields, body, _ = p.find(req.path)
        fields = [(n, v.decode("latin-1")) for n, v in fields]
        if req.method == "HEAD":
            conn.head(status, fields + [("Content-Length", str(len(body)))])
        elif status == 204:
            conn.head(204, fields)
        elif way in ("whole", "declared"):
            conn.head(status, fields + [("Content-Length", str(len(body)))])
            conn.send(body)
        elif way == "close":
            conn.head(status, fields + [("Connection", "close")])
            conn.send(body)
            conn.close_after = True
        else:
            conn.head(status, fields + [("Transfer-Encoding", "chunked")])
            for part in pieces(body, way):
                conn.chunk(part)
            conn.chunk(b"")


class New(h2_frames.FrameOrigin):
    """The same over HTTP/2."""

    def __init__(self, test, ca, host, pages):
        self.pages, self.requests = pages, []
        super().__init__(test, ca, host, self.serve)

    @property
    def accepted(self):
        return len(self.peers)

    @property
    def bytes_in(self):
        return sum(9 + f[3] for p in self.peers for f in p.seen if f[0] in (DATA, HEADERS))

    def serve(self, peer):
        decoder = h2.hpack.Decoder()
        peer.send(h2_frames.frame(h2_frames.SETTINGS))
        while True:
            kind, flags, stream, payload = peer.read()
            if kind == h2_frames.SETTINGS and not flags & h2_frames.ACK:
                peer.send(h2_frames.frame(h2_frames.SETTINGS, h2_frames.ACK))
            if kind != HEADERS:
                continue
            fields = dict(decoder.decode(payload[5:] if flags & 0x20 else payload))
            self.requests.append(fields)
            self.pages.asked.append((fields.get("authorization"), fields))
            peer.send(self.answer(stream, fields[":method"], *self.pages.find(fields[":path"])))

    @staticmethod
    def answer(stream, method, way, status, fields, body, trailers):
        def frame(data, last=False, flags=0):
            return h2_frames.frame(DATA, flags | (END_STREAM if last else 0), stream, data)
        fields = [(n.lower(), v) for n, v in fields]
        if way == "declared":
            fields.append(("content-length", str(len(body))))
        if status == 204 or method == "HEAD":
            return h2_frames.head(stream, status, fields, END)
        head = h2_frames.head(stream, status, fields)
        if trailers:
            return head + frame(body) + h2_frames.frame(HEADERS, END, stream, h2_frames.block(*trailers))
        if way == "padded":
            cut = len(body) // 2
            parts = [body[:cut][i:i + 9000] for i in range(0, cut, 9000)]
            return head + b"".join(frame(b"\x09" + p + bytes(9), flags=PADDED) for p in parts) + \
                b"".join(frame(body[i:i + 9000]) for i in range(cut, len(body), 9000)) + frame(b"", True)
        if way in ("whole", "declared", "close"):
            return head + b"".join(frame(body[i:i + 16384], i + 16384 >= len(body))
                                   for i in range(0, len(body), 16384))
        parts = pieces(body, way)
        return head + b"".join(frame(p, i == len(parts) - 1) for i, p in enumerate(parts))


# ---- asking ----

class Asked:
    def __init__(self, status, code, fields, body, trailers=b""):
        self.status, self.code, self.fields, self.body, self.trailers = status, code, fields, body, trailers

    def all(self, name):
        return [v.encode("latin-1") for n, v in self.fields if n == name.lower()]


def old_client(gate, host):
    """-> (ask(path, fields), close)"""
    st = gate.tls(host)

    def ask(path, fields=(), method="GET"):
        head = "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (
            method, path, host, "".join("%s: %s\r\n" % f for f in fields))
        r = st.ask(head, method)
        return Asked(r.status, r.code, r.headers, r.body, r.trailers)
    return ask, st.close


def new_client(gate, host):
    c = h2.H2(gate, host)

    def ask(path, fields=(), method="GET"):
        a = c.ask(path, method=method, extra=[(n.lower(), v) for n, v in fields])
        text = b"".join(v.encode("latin-1") for _, v in a.trailers or [])
        return Asked(a.status, a.code, a.headers, a.body, text)
    return ask, c.sock.close


PAIRS = {"h1 to h1": (old_client, OLD), "h2 to h1": (new_client, OLD),
         "h1 to h2": (old_client, NEW), "h2 to h2": (new_client, NEW)}


class Line:
    """One pairing; a connection that an answer closed is made anew."""

    def __init__(self, bed, pair):
        self.bed, self.client, self.host = bed, *PAIRS[pair]
        self.ask_, self.close = None, lambda: None

    def ask(self, path, **kw):
        if self.ask_ is None:
            self.ask_, self.close = self.client(self.bed.within.gate, self.host)
        a = self.ask_(path, **kw)
        if self.client is old_client and (a.status >= 500 and a.code or "close" in a.all("connection")):
            self.end()
        return a

    def end(self):
        self.close()
        self.ask_, self.close = None, lambda: None


def same(bed, page, way, a):
    """-> complaint about one reply"""
    _, status, fields, body = page
    want = reflections.wanted(body, "odd")
    if a.status != status or a.code:
        return "%s: %s %s" % (way, a.status, a.code)
    if status != 204 and a.body != want:
        return "%s: %d bytes, %d wanted: %r, want %r" % (way, len(a.body), len(want), a.body[-200:], want[-200:])
    for name, value in fields:
        if a.all(name) != [reflections.wanted(value, "odd")]:
            return "%s: %s: got %r, want %r" % (way, name, a.all(name), reflections.wanted(value, "odd"))
    bed.s.scanner.search(a.body + a.trailers + b"\n".join(v.encode("latin-1") for _, v in a.fields), "reply")
    length = a.all("content-length")
    return None if length in ([], [b"%d" % len(want)]) or status == 204 else "%s: length %s" % (way, length)


def reflected(pair):
    """Every page, whole, in pieces of a byte, and as the version allows."""
    def fn(bed):
        line, bad, n = Line(bed, pair), [], 0
        pages = bed.pages.pages
        for i, page in enumerate(pages):
            head = any(isinstance(p, reflections.Hit) for _, v in page[2] for p in v)
            more = ["declared", "padded"] if line.host == NEW else ["close"]
            for way in ["whole"] if head else ["whole", "bytes"] + (more if EVERYTHING or i % 7 == 0 else []):
                a = line.ask("/page/%s/%d" % (way, i))
                bed.reflected += sum(reflections.hits(v) for _, v in page[2]) + reflections.hits(page[3])
                why = same(bed, page, way, a)
                bad += [("%s, %s" % (pair, page[0]), why)] if why else []
                n += 1
        line.end()
        bed.shapes = max(bed.shapes, len(pages))
        return n, bad
    return fn


def split(pair):
    """Forms cut in two at every byte."""
    def fn(bed):
        line, bad, n = Line(bed, pair), [], 0
        for i, (name, before, form, after) in enumerate(bed.pages.splits):
            if name not in ("raw", "base64+1", "UTF-16LE")[:3 if pair == "h2 to h1" else 1] and not EVERYTHING:
                continue
            want = before + reflections.mark(len(form), "odd") + after
            for cut in range(1, len(want)):
                a = line.ask("/split/%d/%d" % (cut, i))
                bed.reflected += 1
                n += 1
                if (a.status, a.body) != (200, want):
                    bad.append(("%s, %s at %d" % (pair, name, cut), "%s %r" % (a.status, a.body)))
        line.end()
        return n, bad
    return fn


def coded(pair):
    """A coding is what was not asked for: 502, and nothing of it."""
    def fn(bed):
        line, bad = Line(bed, pair), []
        for i, coding in enumerate(CODINGS):
            a = line.ask("/coded/whole/%d" % i, fields=[("Accept-Encoding", coding)])
            if (a.status, a.code) != (502, "cannot_scrub") or b"token" in a.body:
                bad.append((coding, "%s %s %r" % (a.status, a.code, a.body[:80])))
            if bed.pages.asked[-1][1].get("accept-encoding") != "identity":
                bad.append((coding, "asked for %s" % bed.pages.asked[-1][1].get("accept-encoding")))
        line.end()
        return len(CODINGS), bad
    return fn


RANGES = ["bytes=%d-%d" % (i, i) for i in range(50)] + [
    "bytes=-1", "bytes=0-", "bytes=10-", "bytes=0-0,2-2", "bytes=0-10,5-20", "bytes=-5,0-1", "BYTES=0-0",
    "bytes = 0-0", "bytes=0-0;x", "items=0-1", "bytes=5-1", "", "bytes=999-", "bytes=0-18446744073709551616"]


MARGIN = 6 * 8192  # the longest form of a secret


def widened(value):
    """One plain part is asked for with more on each side; of anything else the whole is asked for."""
    m = re.match(r"(?i)bytes=([0-9]*)-([0-9]*)$", value)
    first, last = m.groups() if m else ("", "")
    if not first:
        return "bytes=-%d" % (int(last) + MARGIN) if last else None
    if last and (int(last) < int(first) or int(last) >> 63):
        return None
    return "bytes=%d-%s" % (max(0, int(first) - MARGIN), int(last) + MARGIN if last else "")


def ranges(pair):
    """No part is asked for that could cut a secret, whatever the client says; parts that come unasked are searched."""
    def fn(bed):
        line, bad = Line(bed, pair), []
        want = bed.pages.value
        number = [i for i, p in enumerate(bed.pages.pages) if p[0] == "after 40,000 bytes"][0]
        page = bed.pages.pages[number]
        for i, value in enumerate(RANGES[::1 if EVERYTHING or pair in ("h1 to h1", "h2 to h2") else 5]):
            fields = [("Range", value)] + ([("If-Range", '"x"')] if i % 2 else [])
            a = line.ask("/page/whole/%d" % number, fields=fields)
            bed.reflected += 1
            why = same(bed, page, "whole", a)
            asked = bed.pages.asked[-1][1].get("range")
            bad += [(value, why or "arrived: %s" % asked)] if why or asked != widened(value) else []
        twins = [[(n, "bytes=0-19")] + plain for n in ("Request-Range", "Request_Range", "X_Ms_Range")
                 for plain in ([], [("Range", "bytes=0-9")])]
        for fields in twins:  # some servers read these as Range
            a = line.ask("/page/whole/%d" % number, fields=fields)
            bed.reflected += 1
            why = same(bed, page, "whole", a)
            asked = [n for n in bed.pages.asked[-1][1] if "range" in n]
            bad += [(fields[0][0], why or "arrived: %s" % asked)] if why or asked != ["range"][:len(fields) - 1] else []
        for at in (len(want), len(want) + 10):
            a = line.ask("/part/whole/%d" % at)
            bed.reflected += 1
            body = b"x" * 20 + reflections.mark(len(want), "odd") + b"y" * (at - len(want))
            if (a.status, a.body) != (206, body):
                bad.append(("an unasked part", "%s %r" % (a.status, a.body)))
        line.end()
        return i + 3 + len(twins), bad
    return fn


def trailers(bed):
    """Where trailers go on (HTTP/2 to HTTP/2), they are searched; else they are left out."""
    bad = []
    some = [i for i, (_, b, f, a) in enumerate(bed.pages.splits) if
            all(0x20 <= c < 0x7f for c in b + f + a) and (b + f + a).strip() == b + f + a]
    first = len(bed.pages.pages) - len(bed.pages.splits)
    for pair in ("h2 to h2", "h1 to h2"):
        line = Line(bed, pair)
        for i in some:
            a = line.ask("/page/trailers/%d" % (first + i))
            want = reflections.wanted(bed.pages.pages[first + i][3], "odd")
            if a.status != 200 or a.body != b"{}" or a.trailers not in (b"", want):
                bad.append(("%s %d" % (pair, i), "%s %r" % (a.status, a.trailers)))
            bed.reflected += 1
            bed.s.scanner.search(a.trailers, "trailers")
        line.end()
    return 2 * len(some), bad
