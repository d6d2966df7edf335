#!/usr/bin/python3 -B
"""The mail broker's two roles, conquered, with a real server outside: a front that lies to its back or hands on what it
should have refused, a back that asks vault and dialer for what is not its own. Each row is what that one must not get;
after each the back hands an honest message over."""
import errno
import os
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, scan, seat, seat_broker, smtp, tap  # noqa: E402

HOST, CLOSED = "mail.example.com", "closed.example.com"
SMTP = 7                 # enum scheme
CLEARTEXT, SCRAM = 3, 1  # enum scram_scheme
DATA, OPENED, REFUSED, STATUS, EVENT = 1, 4, 5, 6, 7  # enum broker_packet
OVER = b"\3"
SENDER, TO = "agent@acme.example", "bob@acme.example"


class Bed:
    """One sandbox with a rule of smtp://, and another policy beside it in the same daemon."""

    def __init__(self, t):
        self.t, self.seats = t, seat.Seats(t)
        self.d = d = durward.Durward(t)
        self.server = smtp.Smtp(t, d.ca, "server", HOST)
        d.secret("mail_password", smtp.PASSWORD)
        d.secrets["app"] = {"smtp_login": {"user": smtp.USER, "password": "mail_password"}}
        self.word = scan.canary("ot-")
        d.secret("word", self.word)
        d.secrets["beside"] = {"smtp_login": {"user": "beside", "password": "word"}}
        d.resolve[HOST + ":587"] = d.resolve[CLOSED + ":587"] = self.server.starttls
        d.policy("coder", [{"allow": "smtp://" + HOST, "recipients": ["*@acme.example"], "senders": [SENDER], "message_recipients": 2,
                            "message_megabytes": 1, "with": {"smtp_login": "app"}},
                           {"allow": "web.example.com", "with": {"bearer": "word"}}])
        d.policy("other", [{"allow": "smtp://" + CLOSED, "with": {"smtp_login": "beside"}}])
        self.box = durward.Sandbox(d, flags=["--policy", "coder"])

    def logins(self):
        return len(self.server.logins())


def text(s):
    s = s if isinstance(s, bytes) else s.encode()
    return struct.pack(">H", len(s)) + s


def facts(to=(TO,), sender=SENDER, flags=0, size=0):
    return struct.pack(">BQ", flags, size) + text(sender) + b"".join(text(x) for x in to)


class Front(seat_broker.Front):
    def honest(self):
        got = self.deliver(part(b"Subject: honest\r\n\r\nx\r\n"), OVER)
        return True if got.startswith(b"250") else got

    def put(self, ours, packet):
        while self.seat.call("sendto", ours, packet, len(packet), 0x4000, 0, 0) == -errno.EAGAIN:
            time.sleep(0.01)  # it is full

    def deliver(self, *packets):
        """A message that was let in, and these packets. -> the server's words, b"ended" or what was refused."""
        def run(ours):
            for packet in packets:
                self.put(ours, packet)
            while True:
                r, _, data = self.seat.receive(ours, 10)
                while r == -errno.ECONNRESET:
                    r, _, data = self.seat.receive(ours, 10)
                if r <= 0:
                    return b"ended"
                if data[0] in (STATUS, REFUSED):
                    return data[1:]
        got = self.ask(facts(), opened=run)
        return b"ended" if got in ("ended", None) else got[1]

    def leave(self):
        """A message whose text is begun and not ended. -> whether it was let in"""
        got = self.ask(facts(), opened=lambda ours: self.put(ours, part(b"x\r\n")))
        return got not in ("ended", None) and got[0] == OPENED


def part(data):
    return bytes([DATA]) + data


def front(t, bed):
    f = Front(bed, "smtp", HOST, 587)
    rows = seat.Rows(t, "front to back", f.honest)
    f.refusals(rows, (
        ("another policy's host", "no_rule", facts(), {"host": CLOSED}),
        ("a host of no rule", "no_rule", facts(), {"host": "evil.example.org"}),
        ("an address in place of the name", "no_rule", facts(), {"host": "127.0.0.1"}),
        ("another port", "no_rule", facts(), {"port": 25}),
        ("a recipient that its rule has not", "smtp_recipient", facts(["bob@evil.example"]), {}),
        ("a recipient that its rule has not, behind one that it has", "smtp_recipient", facts([TO, "bob@evil.example"]), {}),
        ("a sender that its rule has not", "smtp_sender", facts(sender="ceo@acme.example"), {}),
        ("no sender", "smtp_sender", facts(sender=""), {}),
        ("more recipients than its rule leaves", "smtp_recipients", facts([TO] * 3), {}),
        ("a size that is declared too large", "smtp_size", facts(size=1000001), {})))
    f.lies(rows, (
        ("no recipient", facts([])), ("no facts", b""), ("facts that are cut", facts()[:-1]), ("more behind the facts", facts() + b"x"),
        ("a flag that there is not", facts(flags=4)), ("a command within an address", facts(["bob@acme.example>\r\nRCPT TO:<x@evil.example"])),
        ("a command within the sender", facts(sender="agent@acme.example>\r\nAUTH PLAIN x\r\n")),
        ("a route in an address", facts(["@acme.example:bob@evil.example"])), ("a percent in an address", facts(["bob%evil.example@acme.example"])),
        ("quotes in an address", facts(['"bob@evil.example"@acme.example'])),
        ("UTF-8 without its flag", facts(["j\u00e9@acme.example"])), ("101 recipients", facts([TO] * 101))))
    second = b"MAIL FROM:<ceo@acme.example>\r\nRCPT TO:<bob@evil.example>\r\nDATA\r\nx\r\n.\r\n"
    for name, packets in (
            ("a bare newline in the text", [part(b"x\n.\n" + second)]),
            ("a bare newline at the start of a piece", [part(b"x"), part(b"\n.\r\n" + second)]),
            ("a return alone in the text", [part(b"x\r.\r" + second)]),
            ("a return at the end of a piece", [part(b"x\r"), part(b".\r\n" + second)]),
            ("a byte 0 in the text", [part(b"x\0\r\n")]),
            ("a line of 999 bytes", [part(b"x" * 999 + b"\r\n")]),
            ("an end within a line", [part(b"x\r\n.\r\nQUIT")]),
            ("more bytes than its rule leaves", [part((b"x" * 98 + b"\r\n") * 160)] * 63),
            ("an event", [part(b"x\r\n"), bytes([EVENT]) + b"AUTH"])):
        before = len(bed.server.messages())
        got = f.deliver(*packets, OVER)
        rows.row(name, not got.startswith(b"250") and len(bed.server.messages()) == before, repr(got)[:300])
    before = len(bed.server.messages())
    got = f.leave()
    honest = f.honest()
    rows.row("a text without an end", got and honest is True and len(bed.server.messages()) == before + 1, repr((got, honest)))
    before = len(bed.server.messages())
    got = f.deliver(part(b"x\r\n.\r\n" + second), OVER)
    came = bed.server.messages()[before:]
    rows.row("an end of its own, and a second message", got.startswith(b"250") and len(came) == 1 and came[0]["to"] == [TO] and
             came[0]["text"] == (b"x\r\n.\r\n" + second).decode(), repr((got, came))[:600])
    rows.refused(f.seat, seat.calls_of_all())
    f.seat.end()


def back(t, bed):
    b = seat_broker.Back(t, bed, "smtp")
    told = b.get("app")
    t.ok(told[1] == 1 and b"smtp plain agent@acme.example" in told[2], "what is told of its login is how and as whom", repr(told))
    b.to_vault.row("its login's password, as a secret", smtp.PASSWORD.encode() not in told[2], repr(told))
    b.refused_secrets((("the file of its password", "mail_password"), ("another policy's login", "beside"),
                       ("a secret of its policy's that is no login", "word"),
                       ("a secret that there is not", "nobody")), bed.word)
    t.eq(b.sign("app", CLEARTEXT, b""), 1, "its own login's password, which it has to send")
    b.refused_signatures((
        ("the password of another policy's login", "beside", CLEARTEXT, b""),
        ("the password behind a secret that is no login", "word", CLEARTEXT, b""),
        ("a proof as of PostgreSQL", "app", SCRAM, b"n=,r=abcdefghijklmnopqrstuvwx,r=x,s=eA==,i=4096,c=biws,r=x"),
        ("the password with a text beside", "app", CLEARTEXT, b"x")))
    b.refused_captures()
    b.refused_places(SMTP, 587, (("another policy's server", CLOSED, 587), ("a host of no rule", "evil.example.org", 587),
                                 ("another port", HOST, 25)))
    b.refused_ends(bed)
    b.end()


def main(t):
    why = smtp.missing()
    if why:
        t.skip("everything", why)
        return
    seat_broker.run(t, Bed(t), "smtp", (front, back))


tap.run(main, timeout=240)
