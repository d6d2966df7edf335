"""A broker's two roles, conquered: what their places have in common whatever the protocol. A back asks
for secrets, for signatures and for connections; what it is not to get is a row."""
import errno
import sys

from . import seat, wire
from .wire import message, text, u8, u32, u64

DATA, END, OPENED, REFUSED = 1, 3, 4, 5  # enum broker_packet
HTTPS = 2                                # enum scheme
UNIX, SEQPACKET = 1, 5 | 0o4000


class Front:
    """A front's place: requests to its back, each with a stream of its own."""

    def __init__(self, bed, protocol, host, port):
        self.bed, self.seat, self.host, self.port = bed, bed.seats.take(protocol + "-front"), host, port
        self.wire = self.seat.wire(protocol + "-back")

    def ask(self, said, host=None, port=None, opened=None, more=()):
        """-> (packet's type, its bytes), "ended" or None. opened: what becomes of a stream that is. more: packets to
        follow; then the answer is the first of the last words."""
        ours = self.open(said, host, port)
        for packet in more:
            self.seat.call("sendto", ours, packet, len(packet), 0x4000, 0, 0)
        r, _, data = self.seat.receive(ours, 10)
        while r == -errno.ECONNRESET or more and r > 0 and data[0] not in (END, REFUSED):
            r, _, data = self.seat.receive(ours, 10)  # reset once, where it ended and had not read all
        got = (data[0], data[1:]) if r > 0 else "ended" if r == 0 else None
        if opened and got and got[0] == OPENED:
            got = (OPENED, opened(ours))
        self.seat.call("close", ours)
        return got

    def open(self, said, host=None, port=None):
        """-> our end of the stream"""
        room = bytearray(8)
        if self.seat.call("socketpair", UNIX, SEQPACKET, 0, room) < 0:
            raise RuntimeError("no socket pair")
        ours, theirs = (int.from_bytes(room[i:i + 4], sys.byteorder) for i in (0, 4))
        self.wire.send(message(wire.BROKER_OPEN, text(host or self.host), u32(port or self.port), text(said)), [theirs])
        self.seat.call("close", theirs)
        return ours

    def heal(self):
        self.wire = self.wire.renew()

    def refusals(self, rows, cases):
        """cases: (name, code, facts, more of `ask`); none of them reaches the server."""
        for name, code, said, more in cases:
            before = self.bed.logins()
            got = self.ask(said, **more)
            rows.row(name, got not in ("ended", None) and got[0] == REFUSED and
                     got[1].split(b"\0")[0] == code.encode() and self.bed.logins() == before, repr(got))

    def lies(self, rows, cases):
        """cases: (name, facts that no front says); each ends the wire, and none reaches the server."""
        for name, said in cases:
            before = self.bed.logins()
            got = self.ask(said)
            ended = self.wire.ended()
            self.heal()
            rows.row(name, got == "ended" and ended and self.bed.logins() == before, repr(got))


class Back:
    """A back's place: the vault and the dialer of its policy."""

    def __init__(self, t, bed, protocol):
        self.t, self.protocol, self.who = t, protocol, bed.seats.take(protocol + "-back")
        self.vault, self.dialer = self.who.wire("vault"), self.who.wire("dialer")
        self.to_vault = seat.Rows(t, "back to vault", lambda: True)
        self.to_dialer = seat.Rows(t, "back to dialer", lambda: True)

    def get(self, name):
        """-> (number, whether there is one, what is said of it)"""
        self.vault.send(message(wire.SECRET_GET, u32(7), text(name)))
        got = self.vault.next(5)
        return got if got in ("ended", None) else (got[1].u32(), got[1].u8(), got[1].data)

    def refused_secrets(self, cases, word):
        """cases: (name, a secret's name); word: what none of them may show"""
        for name, want in cases:
            got = self.get(want)
            self.to_vault.row(name, got not in ("ended", None) and got[1] == 0 and word not in got[2], repr(got))

    def sign(self, name, scheme, what):
        """-> 1: it was signed; 0; or "ended" or None"""
        self.vault.send(message(wire.SIGN_TEXT, u32(7), text(name), text("box"), u32(scheme), text(what)))
        got = self.vault.next(5)
        return got if got in ("ended", None) else got[1].u32() and got[1].u8()

    def refused_signatures(self, cases):
        """cases: (name, a secret's name, scheme, text)"""
        for name, secret, scheme, what in cases:
            got = self.sign(secret, scheme, what)
            self.to_vault.row(name, got == 0, repr(got))

    def refused_captures(self):
        for name, data in (("what its policy's sandboxes captured", message(wire.CAPTURED_ALL, u32(7), text("word"))),
                           ("a sandbox's captured secret",
                            message(wire.CAPTURED_GET, u32(7), text("sb-x"), text("word")))):
            self.vault.send(data)
            ended = self.vault.ended()
            self.to_vault.row(name, ended, "the wire did not end")
            if ended:
                self.vault = self.vault.renew()

    def refused_places(self, scheme, usual, cases):
        """usual: the port of the scheme; cases: (name, host, port), and two that only a scheme that is not this channel's reaches."""
        for name, host, port, at in ([c + (scheme,) for c in cases] +
                                     [("a host of its policy's for HTTPS", "web.example.com", 443, HTTPS),
                                      ("its server as HTTPS", cases[-1][1], usual, HTTPS)]):
            self.dialer.send(message(wire.DIAL, u32(7), u8(at), text(host), u32(port), text("1-1"), text(""), text("")))
            got = self.dialer.next(5)
            got = got if got in ("ended", None) else got[0]
            self.to_dialer.row(name, got == wire.DIAL_FAIL or (got == "ended" and at == HTTPS), repr(got))
            if got == "ended":
                self.dialer = self.dialer.renew()

    def refused_ends(self, bed):
        """Its channel to the controller: a request may wait for somebody's word, and that is all."""
        box = self.who.wires(self.protocol + "-front")[-1].sandbox

        def runs():
            try:
                return bed.box.sh("echo up")[1] == "up\n"
            except (RuntimeError, OSError) as e:
                return repr(e)
        c = seat.Talk(bed, seat.Rows(self.t, "back to controller", runs), self.who.wire("controller"),
                      (wire.KILL, wire.CALLED, wire.DECIDE))

        def asked(sandbox):
            return message(wire.PENDING_APPROVAL, u32(7), u32(60), text(sandbox), text("connect"), text("https"), text("x.example.com"),
                           text("/"), text(""), text("rule"), text("word"), text(""), u64(0), u8(0))
        c.takes("a request to hold", lambda got: got[0] == wire.PENDING_APPROVAL_ANSWER and got[1].u32() == 7, asked(box))
        for name, data in (("an end of its sandbox", message(wire.KILL, text(box), text("reflected"))),
                           ("a call to a model", message(wire.CALLED, text(box), u64(1), u64(1), u64(1))),
                           ("a decision", message(wire.DECIDE, text("ap-aaaaaaaa"), u8(1))),
                           ("a request that is cut", asked(box)[:-1])):
            c.breaks(name, data)

    def end(self):
        seat.Rows(self.t, "back to kernel", lambda: True).refused(self.who, seat.calls_of_all())
        self.who.end()


def run(t, bed, name, parts):
    for part in seat.chosen(parts):
        t.part(part, t, bed)
    bed.box.close()
    seat.listed(t, name)
