"""An injector, as somebody in a gate's place speaks with it: the channel of requests between the two."""
from . import seat, wire
from .wire import message, pairs, text, u8, u32, u64


class Hop:
    """What a gate says to an injector."""

    def __init__(self, bed, rows, gate, policy="coder"):
        self.bed, self.rows, self.gate = bed, rows, gate
        self.wire, self.id = gate.wire("injector", policy), 0

    def fields(self, **over):
        v = dict(generation=1, scheme=wire.HTTPS, host="api.github.com", port=443, method="GET",
                 path="/user", has_query=0, query="", body=wire.BODY_NONE, length=0, te=0,
                 secret="github", entry="explicit", token="", marks=(), blanks=(),
                 fields=(("accept", "*/*"),))
        v.update(over)
        return [u32(v["generation"]), u8(v["scheme"]), text(v["host"]), u32(v["port"]), text(v["method"]),
                text(v["path"]), u8(v["has_query"]), text(v["query"]), u8(v["body"]), u64(v["length"]),
                u8(v["te"]), text(v["secret"]), text(v["entry"]), text(v["token"]),
                u32(len(v["marks"])) + b"".join(text(x) for x in v["marks"]),
                u32(len(v["blanks"])) + b"".join(text(x) for x in v["blanks"]), pairs(v["fields"])]

    def request(self, **over):
        self.id += 1
        return message(wire.INJECTOR_CHANNEL_REQUEST, u32(over.pop("id", self.id)), *self.fields(**over))

    def answer(self, seconds=4):
        """-> (status, code) of a refusal, status of a whole reply, "ended" or None"""
        status = None
        while True:
            got = self.wire.next(seconds)
            if got in ("ended", None):
                return got
            kind, f, _ = got
            if f.u32() != self.id:
                continue
            if kind == wire.INJECTOR_CHANNEL_FAIL:
                return f.u32(), f.text()
            if kind == wire.INJECTOR_CHANNEL_REPLY:
                status = f.u32()
            if kind == wire.INJECTOR_CHANNEL_END:
                return status

    def heal(self):
        self.wire = self.wire.renew()

    def tries(self, name, want, *datagrams, fds=(), begun=0):
        """want: (status, code), "ended", None for no answer at all; nothing goes to an origin (begun: that
        of the right requests among them at most)."""
        before = self.bed.arrived()
        for d in datagrams:
            self.wire.send(d, fds)
        got = self.answer(0.3 if want is None else 4 * seat.WAIT_FACTOR)
        if want == "ended" and got not in ("ended", None):
            got = "ended" if self.wire.ended(1) else got
        sent = self.bed.arrived() - before
        self.rows.row(name, got == want and sent <= begun, "got %r, want %r; %d went out" % (got, want, sent))
        if got == "ended":
            self.heal()

    def asks(self, name, code, status=403, **over):
        self.tries(name, (status, code), self.request(**over))

    def breaks(self, name, *datagrams, fds=(), begun=0):
        self.tries(name, "ended", *datagrams, fds=fds, begun=begun)

    def works(self, **over):
        self.wire.send(self.request(**over))
        return self.answer()
