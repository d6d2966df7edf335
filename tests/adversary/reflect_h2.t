#!/usr/bin/python3 -B
"""C1, C15, C16 where HTTP/2 is spoken: an origin that sends the credential back in each form of the table,
in a field, in trailers, in one DATA frame, in a frame for each byte, padded, with a length declared; to
clients of HTTP/2 and of HTTP/1. Replies are 200 and, but for the mark, the origin's."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import h2, h2_frames, scan, scene, tap  # noqa: E402
from harness.reflections import field_safe, mark, shapes  # noqa: E402

NEW, OLD = "new.example.com", "old.example.com"  # the origin speaks HTTP/2, HTTP/1
DATA, HEADERS, END_STREAM, END_HEADERS, PADDED = (
    h2_frames.DATA, h2_frames.HEADERS, h2_frames.END_STREAM, h2_frames.END_HEADERS, h2_frames.PADDED)
BODIES, FIELDS = ("data", "bytes", "padded", "declared"), ("field", "trailers")


class Reflector:
    """An HTTP/2 origin: /WAY/N is answered with the Nth shape."""

    def __init__(self, plan):
        self.plan, self.credentials = plan, []

    def __call__(self, peer):
        decoder = h2.hpack.Decoder()
        peer.send(h2_frames.frame(h2_frames.SETTINGS))
        while True:
            kind, flags, stream, payload = peer.read()
            if kind == h2_frames.SETTINGS and not flags & h2_frames.ACK:
                peer.send(h2_frames.frame(h2_frames.SETTINGS, h2_frames.ACK))
            if kind != HEADERS:
                continue
            if flags & 0x20:  # priority
                payload = payload[5:]
            fields = dict(decoder.decode(payload))
            self.credentials.append(fields.get("authorization"))
            _, way, number = fields[":path"].split("/")
            _, before, form, after = self.plan[int(number)]
            peer.send(self.answer(way, stream, before + form + after))

    @staticmethod
    def answer(way, stream, body):
        def frame(data, last=False, flags=0):
            return h2_frames.frame(DATA, flags | (END_STREAM if last else 0), stream, data)
        if way == "field":
            return h2_frames.head(stream, 200, [("x-echo", body)], END_HEADERS | END_STREAM)
        if way == "trailers":
            return h2_frames.head(stream) + frame(b"{}") + h2_frames.frame(
                HEADERS, END_HEADERS | END_STREAM, stream, h2_frames.block(("x-echo", body)))
        if way == "declared":
            return h2_frames.head(stream, 200, [("content-length", str(len(body)))]) + frame(body, True)
        if way == "bytes":
            return h2_frames.head(stream) + b"".join(
                frame(body[i:i + 1], i == len(body) - 1) for i in range(len(body)))
        if way == "padded":
            cut = len(body) // 2
            return h2_frames.head(stream) + frame(b"\x09" + body[:cut] + bytes(9), flags=PADDED) + \
                frame(b"\0" + body[cut:], True, PADDED)
        return h2_frames.head(stream) + frame(body, True)


class OldReflector:
    """The same over HTTP/1, chunked."""

    def __init__(self, plan):
        self.plan = plan

    def __call__(self, req, conn):
        _, way, number = req.path.split("/")
        _, before, form, after = self.plan[int(number)]
        body = before + form + after
        if way == "field":
            conn.reply(req, 200, b"{}", [("X-Echo", body.decode("latin-1"))])
        elif way == "declared":
            conn.reply(req, 200, body, kind="text/plain")
        else:
            step = 1 if way == "bytes" else max(1, len(body) // 2)
            conn.head(200, [("Transfer-Encoding", "chunked")])
            for i in range(0, len(body), step):
                conn.chunk(body[i:i + step])
            conn.chunk(b"")


def through_h2(gate, host):
    with h2.H2(gate, host) as c:
        def ask(way, i):
            a = c.ask("/%s/%d" % (way, i))
            if way == "trailers":
                got = dict(a.trailers or []).get("x-echo", "").encode("latin-1")
            else:
                got = (a.get("x-echo") or "").encode("latin-1") if way == "field" else a.body
            return a.status, got
        yield ask


def through_h1(gate, host):
    with gate.tls(host) as st:
        def ask(way, i):
            r = st.ask("GET /%s/%d HTTP/1.1\r\nHost: %s\r\n\r\n" % (way, i, host))
            return r.status, r.get("x-echo", "").encode("latin-1") if way == "field" else r.body
        yield ask


def pairing(t, gate, host, plan, what, through, ways):
    count = 0
    for ask in through(gate, host):
        for i, (name, before, form, after) in enumerate(plan):
            bad, want = [], before + mark(len(form), "odd") + after
            for way in ways:
                if way in FIELDS and not field_safe(before + form + after):
                    continue
                status, got = ask(way, i)
                count += 1
                if (status, got) != (200, want):
                    bad += ["%s: %s" % (way, status), "got  %r" % got, "want %r" % want]
            t.ok(not bad, "C1 C15 C16 %s: %s is redacted" % (what, name), *bad)
    t.ok(count >= 60, "C1 %s: %d shapes" % (what, count))
    return count


def main(t):
    h2.needed()
    s = scene.Scene(t)
    s.odd = scan.canary("o/+") + b'"\\<&>\'~ z/' + scan.canary("", 6)
    s.d.secret("odd", s.odd)
    s.scanner.add("odd", s.odd)
    plan = shapes(s.odd)
    new = Reflector(plan)
    origin = h2_frames.FrameOrigin(t, s.d.ca, NEW, new)
    s.d.origin(NEW, origin)
    old = s.add(OLD, OldReflector(plan))
    for host in (NEW, OLD):
        s.rule(**{"allow": host, "with": {"bearer": "odd"}})
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    hits = sum((pairing(t, gate, NEW, plan, "h2 to h2", through_h2, BODIES + FIELDS),
                pairing(t, gate, NEW, plan, "h1 to h2", through_h1, BODIES + ("field",)),
                pairing(t, gate, OLD, plan, "h2 to h1", through_h2, ("data", "bytes", "declared", "field"))))
    t.eq((set(new.credentials), {q.get("authorization") for q in old.requests}),
         ({"Bearer " + s.odd.decode()}, {"Bearer " + s.odd.decode()}), "the origins had the right credential")
    t.eq(origin.errors, [], "and spoke HTTP/2")
    done = s.d.wait_records(hits, "completed", code="secret_reflected")
    t.eq(len(done), hits, "each reply has its record: secret_reflected")
    s.clean(what="reflection over HTTP/2")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=90)
