#!/usr/bin/python3 -B
"""The other roles, conquered: injector, dialer, signer, vault, logger, controller, exporter. Each row is what
that one must not get; after each a neighbour's client is served (where the role is one that all share:
once it was started again)."""
import errno
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import client, conquer, person, scene, seat, seat_bed, tap, wire  # noqa: E402
from harness.seat_bed import FLEET, OTHER  # noqa: E402
from harness.wire import message, pairs, text, u8, u32, u64  # noqa: E402

HASH, POSTGRES = "0" * 64, 4  # lib/authority.h:enum scheme
FILES = ("opens a file", "makes a file")  # by roles that open files, where nothing says which
PENDING_APPROVAL_DENIED, PENDING_APPROVAL_FULL, APPROVALS = 0, 2, 512  # proxy/link/held.h, controller/sandbox/approvals.h
LAYER_REMOVE, LAYER_SWEEP = 4, 17  # controller/proto/layer_work.h
HOOKS = "hooks.example.com"
LIVES = 1.1  # seconds: a role that dies sooner, six times on end, is started 2 s later


def files(t):
    if conquer.landlock():
        return ()
    t.skip("files by path, of dialer, logger and controller", "this kernel has no Landlock")
    return FILES


def kernel(bed, rows, who, role, may=()):
    """System calls, and whose process it is."""
    r = rows(role + " to kernel")
    r.refused(who, seat.calls_of_all(may))
    uid, root = who.call("getuid"), os.geteuid() == 0
    r.row("its uid", 61700 < uid < 61730 if root else uid == os.geteuid(), "%d" % uid)
    for what, path in (("a secret", bed.s.d.secrets["github"]["file"]),
                       ("the log's signing key", "/proc/%d/environ" % os.getpid())):
        if root or "opens a file" not in may:
            got = who.call("openat", seat.AT_FDCWD, path.encode() + b"\0", 0, 0)
            r.row("opens %s" % what, -got in (errno.EPERM, errno.EACCES, errno.ENOENT), "%d" % got)


def ends(bed, rows, role, more=(), whole=(), foreign=()):
    """What this role may not say to the parent ends it; it is started again. whole: what it may, of each kind that `more`
    spoils; foreign: kinds among these that it never says."""
    r = rows(role + " to parent")
    r.neighbour = bed.comes_back
    who = bed.seats.take(role)
    for kind, *fields in whole:
        who.says(message(kind, *fields))
        seat.taken.add((r.seat, kind))
    bed.t.ok(not who.gone(0.7), "%s: what it may say leaves it alone" % r.seat)
    who.end()
    bed.comes_back()
    for kind, *_ in more:
        if kind not in foreign:
            seat.spoilt.setdefault((r.seat, kind), r.seat)
    said = [(wire.READY,), (wire.LISTENERS, text("x"), u32(0)), (wire.SANDBOX, text("x"), text("other"), u32(0)),
            (wire.STORE_OPEN, u32(1), text("github")), (999,)]
    own = {"vault": (wire.STORE_OPEN,), "controller": (wire.SANDBOX,)}.get(role, ())
    for kind, *fields in [m for m in said if m[0] not in own] + list(more):
        who = bed.seats.take(role)
        who.lives(LIVES)
        who.says(message(kind, *fields))
        if not r.row("message %s%s" % (wire.NAMES.get(kind, kind), " (%s)" % fields[-1].hex()[:24] if fields else ""),
                     who.gone(), "it lives"):
            who.end()


# ---- injector ----

def injector(bed, rows):
    i = bed.injector("coder")
    v = seat.Talk(bed, rows("injector to vault"), i.wire("vault"))

    def get(name, req=7):
        return message(wire.SECRET_GET, u32(req), text(name))

    def refused(got):
        if got in ("ended", None):
            return False
        _, f, _ = got
        return f.u32() == 7 and f.u8() == 0 and bed.word[1][7:].encode() not in f.data
    v.takes("what asks for its own policy's secret", lambda got: (got[0], got[1].u32(), got[1].u8()) == (wire.SECRET, 7, 1), get("github"))
    words = []
    for name, want in (("another policy's secret", "other"), ("a secret that there is not", "nobody"),
                       ("no secret", ""), ("another's name in capitals", "OTHER"), ("a path", "../other"),
                       ("a name with a line ending", "other\n")):
        v.wire.send(get(want))
        got = v.wire.next(5)
        words.append(got[1].data[-40:] if got not in ("ended", None) else got)
        v.rows.row(name, got not in ("ended", None) and refused(got), repr(got))
        if got == "ended":
            v.heal()
    v.rows.row("all of these are told in the same words", len(set(words)) == 1, *map(repr, words))

    def sign(name, key="AKID", when="20260101T000000Z", region="us-east-1", service="s3", digest=HASH, is_text=0,
             previous="", box=""):
        return message(wire.SIGN, u32(7), text(name), text(box), text(key), text(when), text(region), text(service),
                       text(digest), u8(is_text), text(previous))
    def caught(sandbox, body):
        return message(wire.CAPTURE, u32(7), text(sandbox), u32(1), text("access_token"), text("caught"), text("placeholder-x"), u8(0), text(body))

    def good(kind):
        return lambda got: (got[0], got[1].u32(), got[1].u8()) == (kind, 7, 1)
    v.takes("what has a request signed", good(wire.SIGNED), sign("own", key="AKIDOWN"))
    v.takes("what has a text signed", good(wire.SIGNED), message(wire.SIGN_TEXT, u32(7), text("sum"), text("box-2"), u32(0), text("x")))
    v.takes("a reply with a secret in it", good(wire.CAPTURED), caught("box-2", '{"access_token": "a-secret-of-some-length"}'))
    v.takes("what tells of a value that was refused", lambda got: (got[0], got[1].u32()) == (wire.SECRET_RENEWED, 7),
            message(wire.SECRET_REFUSED, u32(7), text("github"), text(HASH)))
    v.takes("what asks for it", good(wire.CAPTURED), message(wire.CAPTURED_GET, u32(7), text("box-2"), text("caught")))
    for name, data in (
            ("signing with another policy's secret", sign("other")), ("signing with a secret that is no key", sign("github")),
            ("signing with a secret that there is not", sign("nobody")),
            ("signing with a name that goes on behind a zero byte", sign("github\0x")),
            ("signing with another sandbox's key", sign("github", box="box-1")),
            ("signing a text with another policy's", message(wire.SIGN_TEXT, u32(7), text("other"), text("box-2"), u32(0), text("x"))),
            ("signing a text with what is no key", message(wire.SIGN_TEXT, u32(7), text("github"), text("box-2"), u32(0), text("x"))),
            ("another policy's secret, said to be refused", message(wire.SECRET_REFUSED, u32(7), text("other"), text(HASH))),
            ("a secret that is what it is, said to be refused", message(wire.SECRET_REFUSED, u32(7), text("github"), text(HASH))),
            ("another sandbox's captured secret", message(wire.CAPTURED_GET, u32(7), text("box-1"), text("other"))),
            ("a captured secret that is none", message(wire.CAPTURED_GET, u32(7), text("box-1"), text("github")))):
        v.tries(name, refused, data)
    for name, data in (
            ("a time with a line ending", sign("github", when="20260101T000000\n")),
            ("a time that is none", sign("github", when="x")), ("a region with a slash", sign("github", region="a/b")),
            ("a service with a line ending", sign("github", service="s3\n")), ("a hash that is none", sign("github", digest="x")),
            ("a hash with a line ending", sign("github", digest=HASH[:-1] + "\n")),
            ("a chunk of nothing", sign("github", previous="x")), ("a long key id", sign("github", key="K" * 200)),
            ("a long name", get("n" * 200)),
            ("a refused value without a hash", message(wire.SECRET_REFUSED, u32(7), text("github"), text("x"))),
            ("a refused value with more behind", message(wire.SECRET_REFUSED, u32(7), text("github"), text(HASH)) + b"\0"),
            ("a request that is cut", get("github")[:-1]), ("a request with more behind", get("github") + b"\0"),
            ("a text beyond its bound", message(wire.SIGN_TEXT, u32(7), text("github"), text("box-2"), u32(0), text("x" * 90000))),
            ("a capture that is cut", message(wire.CAPTURE, u32(7), text("box-1"), u32(9)))):
        v.breaks(name, data)
    v.wire.send(get("github"), fds=(2,))
    v.rows.row("a descriptor beside", v.wire.ended())
    v.heal()
    for kind in (wire.SECRET, wire.SECRET_STALE, wire.SECRET_RENEWED, wire.SECRET_TRY, wire.STORE_FD, wire.TOKEN_FOUND, wire.INIT, wire.PEER,
                 wire.CAPTURED_GONE, wire.HOME, wire.HOME_KEPT, wire.VAULT_ROOTS, wire.DIAL, 0, 999):
        v.breaks("message %s" % wire.NAMES.get(kind, kind), message(kind, u32(1)))
    n = i.many(v.wire.fd, get("other"), 5000, 4)
    v.rows.row("5000 asked at once", bed.near.get(OTHER, "/user").status == 200, "%d" % n)
    v.heal()
    injector_dials(bed, rows, i)
    injector_records(bed, rows, i)
    kernel(bed, rows, i, "injector")
    i.end()


def dial(host, req=7, port=443, scheme=wire.HTTPS, token=""):
    return message(wire.DIAL, u32(req), u8(scheme), text(host), u32(port), text(""), text(token), text(""))


def injector_dials(bed, rows, i, role="injector", own=scene.GITHUB, hosts=()):
    d = seat.Talk(bed, rows(role + " to dialer"), i.wire("dialer"))
    asked = message(wire.BUDGET_ASK, u32(1), u64(0), u8(1), u64(0), u8(0), u8(0), u64(0), u64(0), text(""), u64(0))
    d.takes("a question for leave", lambda got: got[0] == wire.BUDGET, asked)

    def denied(got):
        return got not in ("ended", None) and got[0] == wire.DIAL_FAIL and (got[1].u32(), got[1].text()) == (7, "denied")
    d.takes("a dial of a host of its own",  # of notices' nobody has an address here
            lambda got: got[0] == wire.DIALED if own else (got[1].u32(), got[1].text()) == (7, "resolve"), dial(own or HOOKS))
    for name, host in hosts or (
            ("a host without a credential", scene.PLAIN), ("another policy's host", OTHER),
            ("a host of no rule", "evil.example.com"), ("loopback", "127.0.0.1"), ("the metadata", "169.254.169.254")):
        d.tries(name, denied, dial(host))
    if own:
        d.tries("another port", denied, dial(own, port=22))
    d.breaks("a host in capitals", dial("API.GITHUB.COM"))
    d.breaks("leave for the past", message(wire.BUDGET_ASK, u32(1), u64(0)))
    d.breaks("message SECRET_GET", message(wire.SECRET_GET, u32(1), text("github")))
    d.breaks("message LABELS", message(wire.LABELS, text("sb-x"), u32(1), text("team"), u64(7)))
    d.breaks("message SANDBOX_GONE", message(wire.SANDBOX_GONE, text("sb-x")))
    d.tries("a budget that there is not", lambda got: got not in ("ended", None) and got[0] == wire.BUDGET and
            (got[1].u32(), got[1].u8(), got[1].u64())[2] == 0,
            message(wire.BUDGET_ASK, u32(1), u64(0x77), u8(1), u64(1 << 50), u8(1), u8(1), u64(0), u64(0), text(""), u64(0)))


def injector_records(bed, rows, i):
    c = seat.Talk(bed, rows("injector to controller"), i.wire("controller"),
                  (wire.PENDING_APPROVAL_ANSWER, wire.DECIDE, wire.SANDBOX, wire.RUN, wire.RELOAD))
    ours = bed.api.ask("POST", "/v1/sandboxes", {"policy": "coder"})["id"]
    bed.t.ok(tap.wait_for(lambda: bed.api.show(ours)["state"] == "running", 30, 0.1), "a sandbox of its policy runs")
    c.takes("the end of it", None, message(wire.KILL, text(ours), text("reflected")))
    bed.t.ok(tap.wait_for(lambda: ours not in [x["id"] for x in bed.api.list()["sandboxes"] if x["state"] == "running"], 20, 0.1),
             "which ends", repr(bed.api.list()))
    t, mine = bed.addresses[2], bed.identity("other")

    def alive():
        gate = client.Gate(t, bed.near.cafile, token="sandbox:" + mine["token"])
        return gate.get(OTHER, "/user").status
    c.wire.send(message(wire.KILL, text(mine["id"]), text("reflected")))
    c.rows.row("the end of another policy's sandbox", tap.wait_for(lambda: alive() != 200, 0.5) is False and alive() == 200,
               "it was ended")
    injector_asks(bed, c, bed.identity("coder")["id"], mine["id"])
    for name, data in (("an end of a long name", message(wire.KILL, text("a" * 99), text("x"))),
                       ("an end that is cut", message(wire.KILL, text("a"))),
                       ("a question that is cut", message(wire.PENDING_APPROVAL, u32(1))),
                       ("a question with more behind", hold(1) + b"\0"),
                       ("a question of a day and more", hold(1, seconds=86401)),
                       ("an answer to itself", message(wire.PENDING_APPROVAL_ANSWER, u32(1), u8(1), text("root"))),
                       ("a decision", message(wire.DECIDE, text("x"), u8(1))),
                       ("a sandbox", message(wire.SANDBOX, text("x"), text("other"), u32(0))),
                       ("a command", message(wire.RUN)), ("a reload", message(wire.RELOAD))):
        c.breaks(name, data)
    w = seat.Talk(bed, rows("injector to logger"), i.wire("logger"), (wire.WATCH, wire.JOURNAL, wire.FLEET_KNOWN_ASK))
    w.takes("a tick", None, message(wire.TICK, u64(0)))
    for name, data in (("the log, to look at", message(wire.WATCH, u8(1))), ("what the fleet's logs say", message(wire.FLEET_KNOWN_ASK)), ("a tick beyond its credit", message(wire.TICK, u64(1 << 60))),
                       ("a journal", message(wire.JOURNAL, u64(0)))):
        w.breaks(name, data)


def hold(req, sandbox="", seconds=60):
    return message(wire.PENDING_APPROVAL, u32(req), u32(seconds), text(sandbox), text("PUT"), text("https"), text(scene.GITHUB),
                   text("/x"), text(""), text("rule"), text("github"), text(""), u64(0), u8(0))


def injector_asks(bed, c, own, others):
    """What people are shown, and how much of the list one injector fills."""
    def listed():
        return bed.api.ask("GET", "/v1/approvals")["approvals"]

    def answered(got, want):
        return got not in ("ended", None) and got[0] == wire.PENDING_APPROVAL_ANSWER and (got[1].u32(), got[1].u8()) == want
    c.takes("a question of its own sandbox", None, hold(5, own))
    bed.t.ok(tap.wait_for(lambda: [a["sandbox"] for a in listed()] == [own], 5), "a question of its own sandbox is listed")
    c.wire.send(message(wire.PENDING_APPROVAL_OVER, u32(5)))
    bed.t.ok(tap.wait_for(lambda: not listed(), 5), "and is gone when it is over")
    local = bed.api.ask("POST", "/v1/sandboxes", {"policy": "other"})["id"]
    for name, box in (("a question in the name of another policy's sandbox", others),
                      ("a question in the name of another policy's local sandbox", local),
                      ("a question in the name of a sandbox that there is not", "rt-nobody"),
                      ("a question in the name of no sandbox of ours", "box-1")):
        c.wire.send(hold(6, box))
        got = c.wire.next(5)
        c.rows.row(name, answered(got, (6, PENDING_APPROVAL_DENIED)) and not listed(), "%r %r" % (got, listed()))
    bed.api.ask("DELETE", "/v1/sandboxes/" + local)
    taken, full, names = 0, 0, ["vercel:%d" % i for i in range(600)]
    for n, box in enumerate(names):
        c.wire.send(hold(100 + n, box))
    while True:
        got = c.wire.next(2)
        if got in ("ended", None):
            break
        full += got[0] == wire.PENDING_APPROVAL_ANSWER and (got[1].u32() >= 100, got[1].u8()) == (True, PENDING_APPROVAL_FULL)
    taken = len(listed())
    c.rows.row("questions of 600 made-up sandboxes: room is left for other policies",
               taken + full == 600 and 0 < taken <= APPROVALS / 2, "%d listed, %d refused" % (taken, full))
    other = bed.injector("other")
    o = seat.Talk(bed, c.rows, other.wire("controller"))
    o.wire.send(hold(7, others))
    both = tap.wait_for(lambda: [a["sandbox"] for a in listed() if a["policy"] == "other"] == [others], 5)
    other.end()
    bed.comes_back()
    c.rows.row("and another policy's question is listed among them", both)
    c.heal()
    bed.t.ok(tap.wait_for(lambda: not listed(), 10), "what it asked is gone with its wire", repr(len(listed())))


class Answering:
    """A conquered injector, one life a row, and a client whose request it answers."""

    def __init__(self, bed):
        self.bed, self.i = bed, bed.injector("coder")
        self.gate = bed.s.gate(bed.addresses[0], timeout=6)

    def asked(self):
        wires = self.i.wires("gate")[-2:]
        for _ in range(100):
            for w in wires:
                got = w.next(0.02)
                if got not in (None, "ended") and got[0] == wire.INJECTOR_CHANNEL_REQUEST:
                    return w, got[1].u32()
        raise RuntimeError("no request came")

    def tried(self, make, method="GET"):
        """-> whether its wire ended, and what the client got, with what stood behind it; the next one is another injector's"""
        got = []

        def ask():
            try:
                with self.gate.tls(scene.GITHUB) as st:
                    a = st.ask("%s /user HTTP/1.1\r\nHost: %s\r\n\r\n" % (method, scene.GITHUB), method)
                    a.behind = st.rest(0.5)
                got.append(a)
            except (client.Ended, OSError) as e:
                got.append(e)
        thread = threading.Thread(target=ask)
        thread.start()
        w, ex = self.asked()
        for data in make(ex):
            w.send(data)
        ended = w.ended(4)
        thread.join(15)
        self.i.end()
        self.i = self.bed.injector("coder")
        return ended, got[0] if got else None


def reply(ex, status=200, body=wire.BODY_NONE, length=0, fields=(("x-a", "b"),)):
    return message(wire.INJECTOR_CHANNEL_REPLY, u32(ex), u32(status), u8(body), u64(length), pairs(fields))


def part(ex, data, body=wire.BODY_LENGTH, length=5, status=206, fields=(("content-range", "bytes 0-4/5"),)):
    """A part of a file, as its head and its bytes have it, and the end."""
    said = [message(wire.INJECTOR_CHANNEL_BODY, u32(ex), text(data))] if data else []
    return [reply(ex, status, body, length, fields)] + said + [message(wire.INJECTOR_CHANNEL_END, u32(ex))]


def replies(bed, rows):
    """What an injector answers to a gate is read by the gate's own grammar."""
    a, r = Answering(bed), rows("injector to gate")
    for name, make in (
            ("a field with a line ending", lambda x: [reply(x, fields=(("x-a", "b\r\nx-evil: 1"),))]),
            ("a field's name with a colon", lambda x: [reply(x, fields=(("x-evil: 1\r\nx", "b"),))]),
            ("a zero byte in a field", lambda x: [reply(x, fields=(("x-evil", "b\0"),))]),
            ("a status of 99", lambda x: [reply(x, 99)]), ("a status of 1000", lambda x: [reply(x, 1000)]),
            ("a body that is none", lambda x: [reply(x, body=9)]),
            ("a body before a reply", lambda x: [message(wire.INJECTOR_CHANNEL_BODY, u32(x), text(b"x"))]),
            ("an end before a reply", lambda x: [message(wire.INJECTOR_CHANNEL_END, u32(x))]),
            ("a reply that is cut", lambda x: [reply(x)[:-1]]),
            ("a failure with a line ending", lambda x: [message(wire.INJECTOR_CHANNEL_FAIL, u32(x), u32(502), text("a\r\nx-evil: 1"),
                                                                text("-"), u32(0))]),
            ("a failure that is cut", lambda x: [message(wire.INJECTOR_CHANNEL_FAIL, u32(x), u32(502))]),
            ("a request", lambda x: [message(wire.INJECTOR_CHANNEL_REQUEST, u32(x))]),
            ("a secret", lambda x: [message(wire.SECRET, u32(x), u8(1), u32(1), text("x"))])):
        ended, got = a.tried(make)
        whole = isinstance(got, client.Reply) and got.status in (502, 503, 504) and got.get("x-evil") is None
        r.row(name, ended and whole, "ended %r, the client got %r" % (ended, getattr(got, "raw", got)))
    lengths(a, r)
    a.i.end()


def lengths(a, r):
    """A reply is as long as it says: its rest would be the answer to the client's next request, of another host perhaps."""
    for name, make, method in (
            ("a part that is longer than it says", lambda x: part(x, b"five!HTTP/1.1 200 OK\r\n\r\n"), "GET"),
            ("a part that is shorter than it says", lambda x: part(x, b"four"), "GET"),
            ("a part behind a head without one", lambda x: part(x, b"five!", wire.BODY_NONE, 0), "GET"),
            ("a length of what does not come", lambda x: part(x, b"", wire.BODY_NONE, 0, 200, [("content-length", "5")]), "GET"),
            ("a body for HEAD", lambda x: part(x, b"five!", status=200), "HEAD"),
            ("a body with 304", lambda x: part(x, b"five!", status=304), "GET")):
        ended, got = a.tried(make, method)
        r.row(name, ended and (not isinstance(got, client.Reply) or got.status > 500 or got.truncated or got.behind == b""),
              "ended %r, the client got %r" % (ended, vars(got) if isinstance(got, client.Reply) else got))
    # what the origin has a gate cannot know: a part that nobody asked for is as good as any reply, and no more than it
    ended, got = a.tried(lambda x: part(x, b"five!", fields=[("content-range", "bytes 7-11/12")]))
    r.row("a part that nobody asked for is a reply of its length",
          not ended and isinstance(got, client.Reply) and (got.status, got.body, got.get("content-length")) == (206, b"five!", "5"),
          "ended %r, the client got %r" % (ended, getattr(got, "raw", got)))


# ---- those that all share ----

def signer(bed, rows):
    s = bed.seats.take("signer")
    kernel(bed, rows, s, "signer")
    r = rows("signer to gate")
    fresh = bed.s.gate(bed.addresses[0], timeout=6)

    def client_of(host):
        try:
            return fresh.get(host, "/").status
        except (client.Ended, OSError) as e:
            return e
    for name, make in (("noise for a leaf", lambda q: message(wire.MINTED, u32(q), text(b"noise"), text(b"noise"))),
                       ("no leaf", lambda q: message(wire.MINTED, u32(q), text(b""), text(b""))),
                       ("an answer that is cut", lambda q: message(wire.MINTED, u32(q))),
                       ("a request", lambda q: message(wire.MINT, u32(q), text("a"), text("b")))):
        got, done = [], False
        thread = threading.Thread(target=lambda: got.append(client_of(scene.PLAIN)))
        thread.start()
        for w in s.wires("gate") * 60:
            m = w.next(0.02)
            if m not in (None, "ended") and m[0] == wire.MINT and scene.PLAIN.encode() in m[1].data:
                w.send(make(m[1].u32()))
                done = True
                break
        thread.join(15)
        r.row(name, done and isinstance(got[0], Exception), "asked %r, the client got %r" % (done, got))
        s.end()
        s = bed.seats.take("signer")
    s.end()
    ends(bed, rows, "signer")


def vault(bed, rows):
    v = bed.seats.take("vault")
    kernel(bed, rows, v, "vault")
    r = rows("vault to parent")
    for name, want in (("a secret that is not configured", "nobody"), ("a file by its path", "/etc/shadow"),
                       ("a path that leads up", "../../etc/shadow"), ("no name", "")):
        v.send(seat.CONTROL, message(wire.STORE_OPEN, u32(9), text(want)))
        got = v.control().next(5)
        ok = got not in ("ended", None) and got[0] == wire.STORE_FD and not got[2] and (got[1].u32(), got[1].u8()) == (9, 0)
        r.row("opens " + name, ok, repr(got))
    v.end()
    ends(bed, rows, "vault", more=[
        (wire.TOKEN_GET, u32(1), text("../../../etc/shadow")), (wire.TOKEN_GET, u32(1), text(".hidden")),
        (wire.TOKEN_GET, u32(1), text("")), (wire.TOKEN_SAVE, u32(1), text("a/b"), text("x")),
        (wire.TOKEN_SAVE, u32(1), text("/tmp/x"), text("x")), (wire.TOKEN_SAVE, u32(1), text("-x"), text("x")),
        (wire.TOKEN_SAVE, u32(1), text("x\0y"), text("x")), (wire.STORE_OPEN, u32(1), text("n" * 300)),
        (wire.STORE_STATE, text("github"), u8(2), text("")), (wire.SECRET_TRIED, u32(1), u8(1), u32(1), text(""))],
        whole=[(wire.STORE_OPEN, u32(1), text("github")), (wire.TOKEN_GET, u32(1), text("github")),
               (wire.STORE_STATE, text("github"), u8(1), text(""))], foreign=(wire.SECRET_TRIED, wire.TOKEN_SAVE))


def dialer(bed, rows):
    d = bed.seats.take("dialer")
    kernel(bed, rows, d, "dialer", ("opens a socket", "opens a netlink socket", "connects what it has", "binds what it has",
                                    "connects by MSG_FASTOPEN") + files(bed.t)[:1])
    r = rows("dialer to gate")
    gates = [w for w in d.wires("gate", "coder") if not w.sandbox]  # a listener's: those of sandboxes may be gone
    gates[-1].send(message(wire.DIAL_FAIL, u32(1), text("denied"), text("-")))
    bed.t.ok(not gates[-1].ended(0.5), "a whole answer leaves the wire alone")
    for name, data in (("a connection without its descriptor", message(wire.DIALED, u32(1), text("127.0.0.1:1"))),
                       ("an answer that is cut", message(wire.DIAL_FAIL, u32(1))),
                       ("a dial", dial(scene.PLAIN)), ("a secret", message(wire.SECRET, u32(1), u8(1), u32(1), text("x"))),
                       ("message 999", message(999, u32(1)))):
        w = gates[-1]
        w.send(data)
        ended = w.ended(4)
        r.row(name, ended, "the wire did not end")
        if ended:
            gates[-1] = w.renew()
    d.end()
    ends(bed, rows, "dialer")


def logger_heads(bed, rows, w):
    """And what the logger says is put into texts of SQL."""
    h = seat.Talk(bed, rows("logger to fleet"), w.wire("fleet"))

    def put(host, line, number=1):
        return message(wire.FLEET_HEADS_PUT, text(host), u64(number), text(line))

    def asks(*hosts):
        return message(wire.FLEET_HEADS_ASK, u32(7), u32(len(hosts)), *[text(x) + u64(0) for x in hosts])
    h.takes("a line", None, put("box", "durward-fleet-head/1 box"))
    h.takes("a question, where there is no database", lambda got: got[0] == wire.FLEET_HEADS_END and (got[1].u32(), got[1].u8()) == (7, 0),
            asks("box"))
    h.breaks("a host that ends its text", put("a'); DROP TABLE durward_head; --", "x"))
    h.breaks("a line that ends its text", put("a", "x'); DROP TABLE durward_head; --"))
    h.breaks("a line with a line ending", put("a", "x\ny"))
    h.breaks("a line that is too long", put("a", "x" * 9000))
    h.breaks("a question whose host ends its text", asks("a' OR true; --"))
    h.breaks("a question of nobody", asks())
    h.breaks("a question of too many", asks(*["a"] * 33))
    h.breaks("message FLEET_BEAT", message(wire.FLEET_BEAT, u32(1)))


def logger_known(bed, rows, w):
    """What people are shown of other hosts' logs."""
    c = seat.Talk(bed, rows("logger to controller"), w.wire("controller"))

    def known(n=0, more=b""):
        return message(wire.FLEET_KNOWN, text("box"), u64(1), u64(1), u64(1), u32(n), *[text("forked") + text("x")] * n, more)
    c.takes("what is known of a log", None, known(8))
    c.breaks("more faults of a log than are told", known(9))
    c.breaks("what is known of a log, cut", message(wire.FLEET_KNOWN, text("box"), u64(1)))
    c.breaks("what is known of a log, with more behind", known(more=u8(1)))


def logger(bed, rows):
    w = bed.seats.take("logger")
    kernel(bed, rows, w, "logger", files(bed.t))
    logger_heads(bed, rows, w)
    logger_known(bed, rows, w)
    w.end()
    ends(bed, rows, "logger", more=[
        (wire.NOTICE, u32(99), u64(0), u64(0), text(""), text(""), text("")), (wire.COUNTS, u32(0xffffffff)),
        (wire.SANDBOX_GONE, text("x"))], whole=[(wire.COUNTS, u32(0))], foreign=(wire.SANDBOX_GONE, wire.NOTICE))


def heads(bed, rows, f):
    """What the logger is told of other hosts' logs."""
    h = seat.Talk(bed, rows("fleet to logger"), f.wire("logger"))

    def row(ask, line="box 1 durward-fleet-head/1 box 0"):
        return message(wire.FLEET_HEADS_ROW, u32(ask), text(line))

    def asked(got):
        return got not in ("ended", None) and got[0] == wire.FLEET_HEADS_ASK

    def ask():
        got = h.wire.next(8)
        return got[1].u32() if asked(got) else 0
    got = h.takes("the end of an older question", asked, message(wire.FLEET_HEADS_END, u32(0), u8(1)))
    number = got[1].u32()
    h.takes("a row", None, row(number))
    h.takes("its end", asked, message(wire.FLEET_HEADS_END, u32(number), u8(1)))
    h.breaks("more rows than an answer has", *[row(number + 1)] * 25)
    number = ask()
    h.breaks("an end that is neither good nor bad", message(wire.FLEET_HEADS_END, u32(number), u8(2)))
    h.breaks("a row without its question", message(wire.FLEET_HEADS_ROW, text("box 1 x")))
    h.breaks("a row that is too long", row(ask(), "box 1 " + "x" * 9000))
    for kind, *fields in ((wire.FLEET_HEADS_ASK, u32(1), u32(0)), (wire.TICK, u64(1)), (wire.ROTATE,)):
        h.breaks("message " + wire.NAMES[kind], message(kind, *fields))


# ---- controller ----

SEAT = "sb-seat"  # the parent takes no other for one of ours


def plan(**over):
    v = dict(id=SEAT, policy="coder", host="box", uid=1000, gid=1000, ports=(), binds=(), home="/home/u", user="u",
             git=(), ssh=(), host_key="", other_key="", signs=0, image="", root=0, nested=0, backend=0, tail=(), volumes=(), devices=(), more=b"")
    v.update(over)
    return message(wire.BUILD, text(v["id"]), text(v["policy"]), text(v["host"]), u32(v["uid"]), u32(v["gid"]),
                   u32(len(v["ports"])) + b"".join(u32(p) for p in v["ports"]),
                   u32(len(v["binds"])) + b"".join(text(a) + text(b) + u8(w) for a, b, w in v["binds"]),
                   text(v["home"]), text(v["user"]), u32(len(v["git"])) + b"".join(text(g) for g in v["git"]),
                   u32(len(v["ssh"])) + b"".join(text(g) for g in v["ssh"]), text(v["host_key"]), text(v["other_key"]), u8(v["signs"]), text(v["image"]), u8(v["root"]), u64(0), u64(0), u32(0), u32(0), u32(0),
                   u8(v["nested"]), u8(v["backend"]), b"".join(map(text, v["tail"])),
                   u32(len(v["volumes"])) + b"".join(text(a) + text(b) + u8(w) for a, b, w in v["volumes"]),
                   u32(len(v["devices"])) + b"".join(text(a) + text(b) + u8(w) for a, b, w in v["devices"]), v["more"])


def builder(bed, rows, c):
    b = seat.Talk(bed, rows("controller to builder"), c.wire("builder"), (wire.LISTENERS, wire.LISTENERS_OK))

    def built(got):
        """-> whether one stands, and what is said of it"""
        if got in ("ended", None) or got[0] != wire.BUILT:
            return None, repr(got)
        f = wire.Fields(got[1].data)
        return (f.u8(), f.text()) if f.text() == SEAT else (None, "another's")
    own = dict(uid=os.geteuid(), gid=os.getegid())
    c.send(seat.CONTROL, message(wire.SANDBOX, text(SEAT), text("coder"), u32(0), text(bytes(32)), u32(0)))
    b.takes("a plan", lambda got: built(got)[0] == 1, plan(**own), seconds=30)
    b.takes("its end", lambda got: got[0] == wire.TORN, message(wire.TEARDOWN, text(SEAT)), seconds=30)
    pod, engine = ("cni-1", "c1", ""), ("/run/x.sock", "busybox")
    spec, bound = "the image, the root or a limit is malformed", "nothing is bound into a sandbox of the daemon"
    node = "this daemon has no node's pods" if os.geteuid() == 0 else "only root's daemon gives pods their way out"
    volume = "there is no volume 'nobody'" if os.access("/dev/fuse", os.R_OK | os.W_OK) else "/dev/fuse"
    for name, why, over in (
            ("the whole disk, to write", bound, dict(binds=[("/", "/mnt", 1)])), ("the host's /etc", bound, dict(binds=[("/etc", "/etc", 0)])),
            ("the daemon's state", bound, dict(binds=[(os.path.join(bed.s.d.dir, "state"), "/mnt", 1)])),
            ("a bind of mode 2", bound, dict(binds=[("/a", "/m", 2)])), ("a bind of mode 8", "a bind lacks its mode", dict(binds=[("/a", "/m", 8)])),
            ("a bind that leads up", "a bind's source is not a", dict(binds=[("/home/../etc", "/mnt", 0)])),
            ("a bind that is no path", "a bind's source is not a", dict(binds=[("etc", "/mnt", 0)])),
            ("a bind to where it leads up", "a bind's target is not a", dict(binds=[("/a", "/m/..", 0)])),
            ("two binds at one place", "two binds have the target /m", dict(binds=[("/a", "/m", 0)] * 2)),
            ("uid -1", "the uid or gid is malformed", dict(uid=-1)), ("gid -1", "the uid or gid is malformed", dict(gid=-1)),
            ("a home that leads up", "the home directory is not a", dict(home="/home/../../etc")),
            ("a home that is no path", "the home directory is not a", dict(home="x")),
            ("a login name with a colon", "the login name is malformed", dict(user="u:0:0")),
            ("a login name with a line ending", "the login name is malformed", dict(user="u\nroot")),
            ("an empty login name", "the login name is malformed", dict(user="")),
            ("a host name with a line ending", "the host name is malformed", dict(host="a\nb")),
            ("a git host with a quote", "a git host is not a host name", dict(git=['a"b'])),
            ("a git host with a line ending", "a git host is not a host name", dict(git=["a\n[core]"])),
            ("a host of ssh with a line ending", "a host of ssh is none", dict(ssh=["a\nb"])),
            ("a host of ssh with a star", "a host of ssh is none", dict(ssh=["*"])),
            ("a host of ssh with a port that is none", "a host of ssh is none", dict(ssh=["[a]:1,*"])),
            ("a host key with a line behind it", "a host key is malformed", dict(host_key="ssh-ed25519 AAAA\nevil ssh-ed25519 AAAA")),
            ("a host key of another kind", "a host key is malformed", dict(other_key="ssh-ed25519 AAAA")),
            ("an image by its path", spec, dict(image="../../etc")), ("an image that there is not", "there is no image 'nobody'", dict(image="nobody")),
            ("an image that begins with a dot", spec, dict(image=".x")), ("a root that is none", spec, dict(root=9)),
            ("containers inside, twice", spec, dict(nested=2)), ("a backend that is none", spec, dict(backend=9)),
            ("port 0", "a port is out of range", dict(ports=[0])), ("port 65536", "a port is out of range", dict(ports=[65536])),
            ("more behind", "fields are left over", dict(more=b"\0")),
            ("a volume that there is not", volume, dict(volumes=[("nobody", "/v", 0)])),
            ("a volume whose name leads up", spec, dict(volumes=[("../x", "/v", 0)])),
            ("a volume at a place that leads up", spec, dict(volumes=[("nobody", "/v/..", 0)])),
            ("a volume of mode 2", spec, dict(volumes=[("nobody", "/v", 2)])),
            ("two volumes at one place", spec, dict(volumes=[("nobody", "/v", 0)] * 2)),
            ("a device that is none", spec, dict(devices=[("/etc/passwd", "/dev/x", 1)])),
            ("a device that leads up", spec, dict(devices=[("/dev/../etc/shadow", "/dev/x", 1)])),
            ("a device over one of its own", spec, dict(devices=[("/dev/zero", "/dev/null", 1)])),
            ("a device outside /dev", spec, dict(devices=[("/dev/zero", "/etc/zero", 1)])),
            ("a file of the host's as a device's", spec, dict(devices=[("/etc/shadow", "/usr/x", 0)])),
            ("a device's file over /etc/passwd", spec, dict(devices=[("/usr/bin/env", "/etc/passwd", 0)])),
            ("a device of mode 2", spec, dict(devices=[("/dev/zero", "/dev/x/z", 2)])),
            ("65 devices", spec, dict(devices=[("/dev/zero", "/dev/x/z", 1)] * 65)),
            ("a container with a device", spec, dict(backend=1, tail=engine, devices=[("/dev/zero", "/dev/x/z", 1)])),
            ("containers inside with a device", spec, dict(nested=1, devices=[("/dev/zero", "/dev/x/z", 1)])),
            ("a container by a socket that there is not", "no container engine answers", dict(backend=1, tail=engine)),
            ("a container by another socket", spec, dict(backend=1, tail=("../x.sock", "busybox"))),
            ("a container of an image with a flag", spec, dict(backend=1, tail=("/run/x.sock", "--privileged"))),
            ("a container with a volume", spec, dict(backend=1, tail=engine, volumes=[("nobody", "/v", 0)])),
            ("a pod, where there is no node's", node, dict(backend=6, tail=pod)),
            ("a pod whose network leads up", spec, dict(backend=6, tail=("../1/ns/net", "c1", ""))),
            ("a pod whose pin leads up", spec, dict(backend=6, tail=("cni-1", "../../x", ""))),
            ("a pod whose volume leads up", spec, dict(backend=6, tail=("cni-1", "c1", "../../x"))),
            ("a cluster's pod, where no cluster is named", "the configuration names no cluster", dict(backend=3, tail=("agents", "a:1"))),
            ("a cluster's pod in another path", spec, dict(backend=3, tail=("a/../kube-system", "a:1"))),
            ("a cluster's pod of an image with a flag", spec, dict(backend=3, tail=("agents", "--privileged"))),
            ("a cluster's pod with a volume", spec, dict(backend=3, tail=("agents", "a:1"), volumes=[("nobody", "/v", 0)]))):
        b.tries(name, lambda got: built(got)[0] == 0 and why in built(got)[1], plan(**dict(own, **over)), seconds=20)
    b.takes("a layer's removal", lambda got: got[0] == wire.LAYERED,
            message(wire.LAYER, u32(1), u8(LAYER_REMOVE), text("nobody"), text("")))
    b.takes("a freeze", lambda got: got[0] == wire.LAYERED, message(wire.FREEZE, u32(1), text("nobody"), u8(1)))
    b.takes("an adoption", lambda got: got[0] == wire.BUILT, message(wire.ADOPT, text("nobody")))
    for name, data in (
            ("a sandbox whose name leads up", plan(id="../x")), ("a sandbox without a name", plan(id="")),
            ("a sandbox in capitals", plan(id="BOX")), ("a long name", plan(id="a" * 80)),
            ("a plan of 10 bytes", plan()[:10]), ("a layer whose name leads up", message(wire.LAYER, u32(1), u8(1), text("../x"), text("a"))),
            ("a layer without a name", message(wire.LAYER, u32(1), u8(LAYER_REMOVE), text(""), text(""))),
            ("an operation that is none", message(wire.LAYER, u32(1), u8(99), text("a"), text("b"))),
            ("the builder's own operation", message(wire.LAYER, u32(1), u8(LAYER_SWEEP), text("a"), text("b"))),
            ("a freeze of 2", message(wire.FREEZE, u32(1), text("x"), u8(2))), ("an end that is cut", message(wire.TEARDOWN)),
            ("listeners", message(wire.LISTENERS, text("x"), u32(0))), ("consent", message(wire.LISTENERS_OK, text("x"), u8(1), text(""))),
            ("message INIT", message(wire.INIT)), ("message 999", message(999))):
        b.breaks(name, data)
    b.tries("what another controller kept, of no name", lambda got: got not in ("ended", None) and got[0] == wire.BUILT,
            message(wire.ADOPT, text("nobody")))
    b.tries("a sandbox to freeze that there is not", lambda got: got not in ("ended", None) and got[0] == wire.LAYERED,
            message(wire.FREEZE, u32(1), text("nobody"), u8(1)))


def controller(bed, rows):
    c = bed.seats.take("controller")
    kernel(bed, rows, c, "controller", files(bed.t))
    builder(bed, rows, c)
    r = rows("controller to parent")

    def opened(ip, port):
        c.send(seat.CONTROL, message(wire.PORT_OPEN, u32(5), text(ip), u32(port)))
        while True:
            got = c.control().next(5)
            if got in ("ended", None) or got[0] == wire.PORT_OPENED:
                return got
    taken = int(bed.addresses[1].rpartition(":")[2])
    for name, ip, port in (("a port of a neighbour's listener", "127.0.0.1", taken), ("an address that is not ours", "192.0.2.1", 0),
                           ("a name", "localhost", 0), ("no address", "", 0), ("port 65616", "127.0.0.1", 65616),
                           ("an address with a line ending", "127.0.0.1\n", 0)):
        got = opened(ip, port)
        ok = got not in ("ended", None) and not got[2] and (got[1].u32(), got[1].u8()) == (5, 0)
        r.row("listens at " + name, ok, repr(got))
    c.end()
    ends(bed, rows, "controller", more=[
        (wire.PORT_OWN, u32(0), u8(1)), (wire.PORT_OWN, u32(80), u8(2)), (wire.PORT_OPEN, u32(1), text("a" * 99), u32(1)),
        (wire.SANDBOX, text("x"), u32(9)), (wire.SANDBOX, text(""), text("other"), u32(0), text("no name") + u32(0)),
        (wire.SANDBOX, text("x"), text("other"), u32(0), text("another's kind") + u32(0)),
        (wire.SANDBOX, text("sb-x"), text(""), u32(0), text("every policy") + u32(0)), (wire.SANDBOX, text("a" * 99), text("other"), u32(0)),
        (wire.SANDBOX, text("sb-x"), text("other"), u32(0), text("labels twice") + u32(2) + text("a") + u64(1) + text("a") + u64(2)),
        (wire.LABELS, text("sb-x"), u32(33)), (wire.LABELS, text("sb-x"), u32(1), text("a"), u64(0)), (wire.LABELS, text("sb-x"), u32(1), text("a" * 64), u64(1)),
        (wire.STORE_STATE, text("github"), u8(1), text("")), (wire.REVOKED, u32(1)), (wire.REVOKED_UNTIL, u32(1)), (wire.SANDBOX_GONE, text("a" * 99))],
         whole=[(wire.SANDBOX, text(SEAT + "-2"), text("other"), u32(0), text(bytes(32)), u32(0)),
                (wire.LABELS, text(SEAT + "-2"), u32(1), text("a"), u64(1)), (wire.SANDBOX_GONE, text(SEAT + "-2")),
                (wire.PORT_OWN, u32(8080), u8(1)), (wire.PORT_OPEN, u32(1), text("127.0.0.1"), u32(0)), (wire.REVOKED, u64(0), u32(0)), (wire.REVOKED_UNTIL, u64(1))],
         foreign=(wire.STORE_STATE,))


def exporter(bed, rows):
    k = bed.seats.take("exporter")
    kernel(bed, rows, k, "exporter")
    injector_dials(bed, rows, k, "exporter", None, (
        ("a host of a policy", scene.PLAIN), ("a credentialed host", scene.GITHUB), ("a host of nobody", "evil.example.com"),
        ("loopback", "127.0.0.1")))
    k.end()
    ends(bed, rows, "exporter", more=[(wire.CARRIED, u32(1)), (wire.CARRY, u32(1), u8(1), text("x"))], foreign=(wire.CARRY, wire.CARRIED))


def fleet_notes(bed, rows, f):
    """To the controller: what is said is read, and can refuse tokens and no more."""
    n = seat.Talk(bed, rows("fleet to controller"), f.wire("controller"))
    mine = bed.identity("other")

    def asked(got):
        return got[0] == wire.NOTES_ASK

    def note(place=1, kind="revoked", id="rt-nobody", body="1.-"):
        return message(wire.NOTE, u64(place), text(kind), text(id), text(body))

    def question(kind=wire.NOTES_ASK):
        """The next of that kind, among what the controller says of itself."""
        got = n.wire.next(5)
        while got not in ("ended", None) and got[0] != kind:
            got = n.wire.next(5)
        return got

    def broken(name, *said):
        n.wire.send(message(wire.NOTES_UP))
        question()
        n.breaks(name, *said)
    t = bed.t
    n.wire.send(message(wire.NOTES_UP))
    got = question()
    t.ok(asked(got), "%s: another connection is taken" % n.rows.seat, repr(got))
    seat.taken.add((n.rows.seat, wire.NOTES_UP))
    number = got[1].u32()
    n.takes("a note", None, note())
    n.takes("the end of an answer", None, message(wire.NOTES_READ, u32(number), u8(0)))
    n.takes("that nothing is kept", None, message(wire.NOTE_KEPT, u32(9), u8(1)))
    n.takes("a hint", None, message(wire.NOTES_HINT))
    gate = client.Gate(bed.addresses[2], bed.near.cafile, token="sandbox:" + mine["token"])

    def status():
        r, st = gate.connect(OTHER + ":443")
        st.close()
        return r.status
    t.eq(status(), 200, "a token is taken")
    n.wire.send(message(wire.NOTES_UP))
    question()
    n.takes("a note of a sandbox of ours", None, note(id=mine["id"], body="1.0123456789abcdef"))
    t.ok(tap.wait_for(lambda: status() == 407, 5), "a revoked one is refused")
    broken("a letter that is none", note(id="rt-'"))
    broken("a note of too many bytes", note(body="1" * 20481))
    broken("a note that is cut", message(wire.NOTE, u64(1)))
    broken("more notes than are asked for", *[note(kind="x")] * 17)
    n.breaks("a note that nobody asked for", note())
    broken("an end without its number", message(wire.NOTES_READ, u8(0)))
    broken("an end of another kind", message(wire.NOTES_READ, u32(1), u8(3)))
    n.breaks("what is kept of another kind", message(wire.NOTE_KEPT, u32(9), u8(3)))
    n.breaks("a connection with more behind", message(wire.NOTES_UP, u8(1)))
    n.breaks("a hint with more behind", message(wire.NOTES_HINT, u8(1)))
    for kind in (wire.NOTE_PUT, wire.NOTES_ASK, wire.PENDING_APPROVAL, wire.KILL, wire.RUN, wire.RELOAD, 0):
        n.breaks("message %s" % wire.NAMES.get(kind, kind), message(kind, u32(1)))

    def shares(kind=0, amount=40, held=12, more=b""):
        return message(wire.SHARES, u32(1), text("coder"), u8(kind), u32(3600), u64(amount), u64(held), more)
    question(wire.SHARES_ASK)
    n.takes("what this host holds", None, shares())
    for name, said in (("shares that nobody asked for", [shares(), shares()]), ("shares of no kind", [shares(kind=99)]),
                       ("shares above their limit", [shares(held=41)]), ("shares with more behind", [shares(more=u8(1))]),
                       ("shares that are cut", [message(wire.SHARES, u32(2))])):
        question(wire.SHARES_ASK)
        n.breaks(name, *said)


def fleet(bed, rows):
    f = bed.seats.take("fleet")
    kernel(bed, rows, f, "fleet")
    v = seat.Talk(bed, rows("fleet to vault"), f.wire("vault"))

    def none(got):
        return got not in ("ended", None) and (got[1].u32(), got[1].u8()) == (7, 0) and b"ghp_" not in got[1].data
    v.takes("what asks whom to log in as", lambda got: (got[0], got[1].u32(), got[1].u8()) == (wire.SECRET, 7, 1),
            message(wire.SECRET_GET, u32(7), text("fleet")))
    for name, want in (("a rule's secret", "github"), ("the login's password", "fleet_password"), ("a secret that there is not", "x")):
        v.tries(name, none, message(wire.SECRET_GET, u32(7), text(want)))
    d = seat.Talk(bed, rows("fleet to dialer"), f.wire("dialer", "(fleet)"))

    def denied(got):
        return got not in ("ended", None) and got[0] == wire.DIAL_FAIL and (got[1].u32(), got[1].text()) == (7, "denied")
    d.takes("a dial of its database", lambda got: got[0] == wire.DIAL_FAIL and (got[1].u32(), got[1].text()) == (7, "connect"),
            dial(FLEET, port=5432, scheme=POSTGRES))
    for name, host, port in (("a host of a policy", scene.PLAIN, 443), ("another port of its own", FLEET, 22),
                             ("a host of nobody", "evil.example.com", 5432), ("loopback", "127.0.0.1", 5432)):
        d.tries(name, denied, dial(host, port=port, scheme=POSTGRES))
    d.breaks("its host by HTTPS", dial(FLEET, port=5432))
    heads(bed, rows, f)
    s = seat.Talk(bed, rows("fleet to shares"), f.wire("dialer", ""))
    s.takes("another life of the holder", lambda got: got[0] == wire.FLEET_HOLDER, message(wire.FLEET_LOST))
    s.takes("the holder's beginning", None, message(wire.FLEET_UP))
    s.tries("a share that nobody asked for", lambda got: got != "ended" and (got is None or got[0] == wire.FLEET_BEAT),
            message(wire.FLEET_SHARE, u32(9), u64(1 << 50)))
    seat.taken.add((s.rows.seat, wire.FLEET_SHARE))
    s.breaks("a share without its number", message(wire.FLEET_SHARE, u64(1)))
    s.breaks("message FLEET_BEAT", message(wire.FLEET_BEAT, u32(1)))
    s.breaks("message BUDGET_BACK", message(wire.BUDGET_BACK, u32(1), u64(1), u64(1)))
    s.breaks("message DIAL", dial(scene.PLAIN))
    fleet_notes(bed, rows, f)
    f.end()
    ends(bed, rows, "fleet", more=[(wire.FLEET_SHARE, u32(1), u64(9))], foreign=(wire.FLEET_SHARE,))


PARTS = (injector, replies, dialer, signer, vault, exporter, fleet, controller, logger)


def everything(t):
    bed = seat_bed.Bed(t, fleet=True, notify={"webhook": {"url": "https://%s/in" % HOOKS},
                                     "when": [{"denied": 1000000, "within": "1h"}]})

    def rows(name):
        return seat.Rows(t, name, bed.neighbour)
    t.eq(bed.comes_back(), True, "the neighbour is served before anybody is in a role's place")
    bed.fleet_read()
    for part in seat.chosen(PARTS):
        t.part(part, bed, rows)
    bed.s.clean()
    seat.listed(t, "roles")


def main(t):
    person.each(t, everything, together=True)


tap.run(main, timeout=300)
