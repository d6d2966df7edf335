#!/usr/bin/python3 -B
"""The mailbox broker's two roles, conquered, with a real server outside: a front that lies to its back or hands on commands
that it should have refused, a back that asks vault and dialer for what is not its own. Each row is what that one must not
get; after each the back reads a mailbox for an honest front."""
import errno
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, imap, scan, seat, seat_broker, tap  # noqa: E402

HOST, CLOSED = "mail.example.com", "closed.example.com"
IMAP = 8                 # enum scheme
CLEARTEXT, SCRAM = 3, 1  # enum scram_scheme
DATA, OPENED, REFUSED, STATUS, EVENT = 1, 4, 5, 6, 7  # enum broker_packet


class Bed:
    """One sandbox with a rule of imap://, and another policy beside it in the same daemon."""

    def __init__(self, t):
        self.t, self.seats = t, seat.Seats(t)
        self.d = d = durward.Durward(t)
        self.server = imap.Imap(t, d.ca, HOST)
        self.server.put("INBOX", b"first")
        self.server.put("Secret", b"secret", b"secret-4711")
        d.secret("mailbox_password", imap.PASSWORD)
        d.secrets["app"] = {"imap_login": {"user": imap.USER, "password": "mailbox_password"}}
        self.word = scan.canary("ot-")
        d.secret("word", self.word)
        d.secrets["beside"] = {"imap_login": {"user": "beside", "password": "word"}}
        d.resolve[HOST + ":143"] = d.resolve[CLOSED + ":143"] = self.server.starttls
        d.policy("coder", [{"allow": "imap://" + HOST, "folders": ["INBOX", "Sent"], "actions": ["flag", "append"], "message_megabytes": 1,
                            "session_commands": 40, "with": {"imap_login": "app"}},
                           {"allow": "web.example.com", "with": {"bearer": "word"}}])
        d.policy("other", [{"allow": "imap://" + CLOSED, "with": {"imap_login": "beside"}}])
        self.box = durward.Sandbox(d, flags=["--policy", "coder"])

    def logins(self):
        return self.server.logins()

    def state(self):
        s = self.server
        return s.folders(), s.subjects("INBOX"), s.flags("INBOX"), s.subjects("Secret"), s.subjects("Sent")


def part(said):
    return bytes([DATA]) + said


class Front(seat_broker.Front):
    def honest(self):
        got = self.session(part(b"SELECT \"INBOX\"\r\n"), STATUS, part(b"FETCH 1 (BODY.PEEK[TEXT])\r\n"), STATUS)
        return True if b"welcome-4711" in got else got

    def put(self, ours, packet):
        while self.seat.call("sendto", ours, packet, len(packet), 0x4000, 0, 0) == -errno.EAGAIN:
            time.sleep(0.01)  # it is full

    def session(self, *steps):
        """steps: packets to send; STATUS: until the back says so, or ends. -> all that it said, a status behind a NUL."""
        def run(ours):
            said = b""
            for step in steps:
                if step != STATUS:
                    self.put(ours, step)
                    continue
                while True:
                    r, _, data = self.seat.receive(ours, 10)
                    while r == -errno.ECONNRESET:
                        r, _, data = self.seat.receive(ours, 10)
                    if r <= 0:
                        return said + b"\0ended"
                    said += b"\0" * (data[0] == STATUS) + data[1:]
                    if data[0] == STATUS:
                        break
            return said
        got = self.ask(b"", opened=run)
        return b"\0ended" if got in ("ended", None) else got[1]


def front(t, bed):
    f = Front(bed, "imap", HOST, 143)
    rows = seat.Rows(t, "front to back", f.honest)
    f.refusals(rows, (
        ("another policy's host", "no_rule", b"", {"host": CLOSED}), ("a host of no rule", "no_rule", b"", {"host": "evil.example.org"}),
        ("an address in place of the name", "no_rule", b"", {"host": "127.0.0.1"}), ("another port", "no_rule", b"", {"port": 993})))
    f.lies(rows, (("facts, of which there are none", b"x"),))
    before = bed.state()
    for name, said in (
            ("a mailbox that its rule has not", b"SELECT \"Secret\"\r\n"), ("the same, to look", b"EXAMINE \"Secret\"\r\n"),
            ("its state", b"STATUS \"Secret\" (MESSAGES)\r\n"), ("a mailbox by a literal", b"SELECT {6}\r\nSecret\r\n"),
            ("a mailbox in another form", b"SELECT \"&AFMAZQBjAHIAZQB0-\"\r\n"), ("a mailbox by a path", b"SELECT \"Sent/../Secret\"\r\n"),
            ("a flag that deletes", b"STORE 1 +FLAGS (\\Deleted)\r\n"), ("EXPUNGE", b"EXPUNGE\r\n"), ("COPY", b"COPY 1 \"Sent\"\r\n"),
            ("MOVE", b"MOVE 1 \"Sent\"\r\n"), ("a new mailbox", b"CREATE \"Sent\"\r\n"), ("a mailbox's end", b"DELETE \"Sent\"\r\n"),
            ("RENAME", b"RENAME \"Sent\" \"INBOX\"\r\n"), ("a login", b"LOGIN \"x\" \"y\"\r\n"), ("AUTHENTICATE", b"AUTHENTICATE PLAIN\r\n"),
            ("STARTTLS", b"STARTTLS\r\n"), ("LOGOUT, of which the back says its own", b"LOGOUT\r\n"), ("COMPRESS", b"COMPRESS DEFLATE\r\n"),
            ("ENABLE", b"ENABLE UTF8=ACCEPT\r\n"), ("a command that there is not", b"NOSUCH\r\n"), ("a tag of its own", b"a1 NOOP\r\n"),
            ("a bare newline", b"NOOP\nEXPUNGE\r\n"), ("a return alone", b"NOOP\rEXPUNGE\r\n"), ("a line's end within quotes", b"LIST \"\" \"x\r\nEXPUNGE\"\r\n"),
            ("a line's end within a literal", b"SELECT {14}\r\nINBOX\r\nEXPUNGE\r\n"), ("two commands at once", b"SELECT \"INBOX\"\r\nNOOP\r\n"),
            ("a command that is too long", b"SEARCH " + b"ALL " * 3900), ("a message for a mailbox that its rule has not", b"APPEND \"Secret\" {5}\r\n"),
            ("a message that is declared too large", b"APPEND \"Sent\" {1000001}\r\n"), ("DONE, and nothing idles", b"DONE\r\n")):
        packets = [part(said[i:i + 16000]) for i in range(0, len(said), 16000)] * (3 if "too long" in name else 1)
        got = f.session(part(b"SELECT \"INBOX\"\r\n"), STATUS, *packets, STATUS)
        rows.row(name, got.endswith(b"\0ended") and b"secret-4711" not in got, repr(got)[-400:])
    for name, packets in (
            ("more than a message was to have", (part(b"hello\r\nx CREATE \"Made\"\r\n"),)), ("a second message", (part(b"hello {5}\r\n"),)),
            ("a byte 0 in a message", (part(b"he\0lo\r\n"),)), ("an event in a message", (part(b"he"), bytes([EVENT]) + b"x"))):
        got = f.session(part(b"APPEND \"Sent\" {5}\r\n"), STATUS, *packets, STATUS)
        rows.row(name, got.endswith(b"\0ended") and bed.server.folders() == before[0], repr(got)[-400:])
    got = f.session(part(b"APPEND \"Sent\" {5}\r\nhello\r\n"), STATUS, STATUS)
    rows.row("a message before the server asks for it", got.endswith(b"\0ended"), repr(got)[-400:])
    got = f.session(part(b"IDLE\r\n"), STATUS, part(b"EXPUNGE\r\n"), STATUS)
    rows.row("a command while it idles", got.endswith(b"\0ended"), repr(got)[-400:])
    got = f.session(part(b"SELECT \"INBOX\"\r\n"), STATUS, part(b"LIST \"\" \"*\"\r\n"), STATUS)
    rows.row("names that its rule has not", b"INBOX" in got and b"Secret" not in got, repr(got)[-400:])
    got = f.session(*[x for _ in range(41) for x in (part(b"NOOP\r\n"), STATUS)])
    rows.row("more commands than its rule leaves", got.count(b"\0OK") == 40 and got.endswith(b"\0ended"), repr(got)[-400:])
    t.eq(bed.state(), before, "and the mailboxes are as they were")
    rows.refused(f.seat, seat.calls_of_all())
    f.seat.end()


def back(t, bed):
    b = seat_broker.Back(t, bed, "imap")
    told = b.get("app")
    t.ok(told[1] == 1 and b"imap plain agent@acme.example" in told[2], "what is told of its login is how and as whom", repr(told))
    b.to_vault.row("its login's password, as a secret", imap.PASSWORD.encode() not in told[2], repr(told))
    b.refused_secrets((("the file of its password", "mailbox_password"), ("another policy's login", "beside"),
                       ("a secret of its policy's that is no login", "word"), ("a secret that there is not", "nobody")), bed.word)
    t.eq(b.sign("app", CLEARTEXT, b""), 1, "its own login's password, which it has to send")
    b.refused_signatures((
        ("the password of another policy's login", "beside", CLEARTEXT, b""),
        ("the password behind a secret that is no login", "word", CLEARTEXT, b""),
        ("a proof as of PostgreSQL", "app", SCRAM, b"n=,r=abcdefghijklmnopqrstuvwx,r=x,s=eA==,i=4096,c=biws,r=x"),
        ("the password with a text beside", "app", CLEARTEXT, b"x")))
    b.refused_captures()
    b.refused_places(IMAP, 143, (("another policy's server", CLOSED, 143), ("a host of no rule", "evil.example.org", 143),
                                 ("another port", HOST, 993)))
    b.refused_ends(bed)
    b.end()


def main(t):
    why = imap.missing()
    if why:
        t.skip("everything", why)
        return
    seat_broker.run(t, Bed(t), "imap", (front, back))


tap.run(main, timeout=240)
