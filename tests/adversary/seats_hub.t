#!/usr/bin/python3 -B
"""A conquered gate, and all but the injector: dialer, signer, logger, controller, parent, kernel. After each
row a neighbour's gate serves its client."""
import errno
import os
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import person, scene, seat, seat_bed, tap, wire  # noqa: E402
from harness.seat_bed import OTHER  # noqa: E402
from harness.wire import message, text, u8, u32, u64  # noqa: E402

(ADMITTED, DENIED, COMPLETED, ABORTED, CONNECTION, DNS, PACKET, TLS_REFUSED, LIFECYCLE, CHECKPOINT) = range(1, 11)
RF_CODE, RF_STATUS, RF_DETAIL, RF_SANDBOX, RF_POLICY = 1, 9, 16, 19, 20
FLOOD, LINES_A_SECOND = 500, 16  # lib/log_bound.h
CREDIT = 1 << 20  # bytes of a journal (audit/logger/logger_internal.h: LOGGER_CREDIT)


# ---- dialer ----

class Dials(seat.Talk):
    def dial(self, **over):
        v = dict(req=7, scheme=wire.HTTPS, host=scene.PLAIN, port=443, id="", token="", owner="")
        v.update(over)
        return message(wire.DIAL, u32(v["req"]), u8(v["scheme"]), text(v["host"]), u32(v["port"]),
                       text(v["id"]), text(v["token"]), text(v["owner"]))

    def code(self, got):
        """-> "dialed", the code of a refusal, or what came"""
        if got in ("ended", None):
            return got
        kind, f, fds = got
        f.u32()
        for fd in fds:
            self.seat.call("close", fd)
        return "dialed" if kind == wire.DIALED else f.text() if kind == wire.DIAL_FAIL else kind

    def asks(self, name, want, **over):
        before = self.bed.arrived()
        self.wire.send(self.dial(**over))
        got = self.code(self.wire.next(5))
        self.rows.row(name, got == want and self.bed.arrived() == before, "%r, not %r" % (got, want))
        if got == "ended":
            self.heal()


def dialer(bed, rows, gate):
    d = Dials(bed, rows("gate to dialer"), gate.wire("dialer", "coder"), (wire.BUDGET_SETTLE,))
    d.takes("a dial of a host of the policy", lambda got: d.code(got) == "dialed", d.dial())
    d.takes("a question for leave", lambda got: got[0] == wire.BUDGET,
            message(wire.BUDGET_ASK, u32(1), u64(0), u8(1), u64(0), u8(0), u8(0), u64(0), u64(0), text(""), u64(0)))
    for name, over in (
            ("a host of no rule", dict(host="evil.example.com")),
            ("a host that is credentialed only", dict(host=scene.GITHUB)),
            ("another policy's host", dict(host=OTHER)),
            ("a subdomain", dict(host="x." + scene.PLAIN)),
            ("an allowed host's other port", dict(port=22)),
            ("loopback", dict(host="127.0.0.1")), ("loopback of IPv6", dict(host="::1")),
            ("where the metadata are", dict(host="169.254.169.254", scheme=wire.HTTP, port=80)),
            ("a private address", dict(host="10.0.0.1")),
            ("a name of this machine", dict(host="localhost")),
            ("a token that none is asked for", dict(token="dwt1.x.y"))):
        d.asks(name, "denied", **over)
    for name, over in (
            ("a host in capitals", dict(host=scene.PLAIN.upper())),
            ("a host with a dot behind", dict(host=scene.PLAIN + ".")),
            ("an empty host", dict(host="")), ("a host with a zero byte", dict(host=scene.PLAIN + "\0x")),
            ("a host in brackets", dict(host="[::1]")), ("a long host", dict(host="a" * 260)),
            ("a decimal address", dict(host="2130706433")), ("port 0", dict(port=0)),
            ("port 65979", dict(port=65979)), ("scheme 0", dict(scheme=0)), ("scheme 3", dict(scheme=3)),
            ("an id with a blank", dict(id="1 2")), ("an id with a line ending", dict(id="1\r\n2")),
            ("a long id", dict(id="1" * 200)), ("a long token", dict(token="t" * 600))):
        d.breaks(name, d.dial(**over))
    whole = d.dial()
    for n in (4, 8, len(whole) // 2, len(whole) - 1):
        d.breaks("a dial of %d bytes of its %d" % (n, len(whole)), whole[:n])
    d.breaks("a dial with more behind", whole + b"\0")
    d.breaks("a dial with a descriptor", whole, fds=(2,))
    d.breaks("a leave that is cut", message(wire.BUDGET_ASK, u32(1)))
    d.breaks("a leave for two requests", message(wire.BUDGET_ASK, u32(1), u64(0), u8(2), u64(0), u8(0), u8(0), u64(0), u64(0), text(""), u64(0)))
    d.breaks("a leave of two portions", message(wire.BUDGET_ASK, u32(1), u64(0), u8(1), u64(0), u8(2), u8(0), u64(0), u64(0), text(""), u64(0)))
    d.breaks("a call of a tool", message(wire.BUDGET_ASK, u32(1), u64(0), u8(1), u64(0), u8(0), u8(0), u64(0), u64(0), text(""), u64(7)))
    d.breaks("tokens of a call", message(wire.BUDGET_ASK, u32(1), u64(0), u8(1), u64(0), u8(0), u8(0), u64(1), u64(0), text("x"), u64(0)))
    d.breaks("tokens of a call of another sandbox", message(wire.BUDGET_ASK, u32(1), u64(0), u8(1), u64(0), u8(0), u8(0), u64(1), u64(0), text("sb-other"), u64(0)))
    d.breaks("tokens that come back", message(wire.BUDGET_SETTLE, u32(1), u64(0), text("x"), u64(9), u64(0), u64(0), u64(0)))
    d.wire.send(message(wire.BUDGET_ASK, u32(1), u64(0x1234), u8(1), u64(1 << 40), u8(1), u8(1), u64(0), u64(0), text(""), u64(0)))
    got = d.wire.next(3)
    kind, f, _ = got
    f.u32(), f.u8()
    rows("gate to dialer").row("a budget that there is not", kind == wire.BUDGET and f.u64() == 0, repr(got))
    for kind in (wire.DIALED, wire.DIAL_FAIL, wire.BUDGET, wire.JOURNAL, wire.SECRET_GET, wire.PEER, wire.POLICY,
                 wire.PORT_OWN, wire.LABELS, wire.SANDBOX_GONE, wire.REVOKED, wire.INIT, wire.INJECTOR_CHANNEL_REQUEST, 0, 999):
        d.breaks("message %s" % wire.NAMES.get(kind, kind), message(kind, u32(1)))
    n = gate.many(d.wire.fd, d.dial(), 3000, 4)
    fresh = bed.near.get(OTHER, "/user").status
    d.rows.row("3000 dials whose answers are left", fresh == 200, "%d were taken, beside: %r" % (n, fresh))
    d.heal()
    d.wire.send(d.dial())
    bed.t.eq(d.code(d.wire.next(5)), "dialed", "and on a new wire a host of the policy is dialled")


def dialer_tokens(bed, rows):
    gate = bed.gate("coder", "other")
    good, far, old = bed.identity("coder"), bed.identity("other"), bed.identity("coder")
    bed.api.ask("DELETE", "/v1/identities/" + old["id"])
    d = Dials(bed, rows("gate to dialer"), gate.wire("dialer", "coder"))
    d.asks("no token where there must be one", "denied")
    d.asks("another policy's token", "denied", token=far["token"])
    d.asks("a revoked token", "denied", token=old["token"])
    d.asks("a cut token", "denied", token=good["token"][:-4])
    d.wire.send(d.dial(token=good["token"]))
    bed.t.eq(d.code(d.wire.next(5)), "dialed", "with its token it is dialled")
    gate.end()


# ---- signer ----

def spki(*curve):
    key = subprocess.run(["openssl", "genpkey"] + list(curve), capture_output=True, check=True).stdout
    return subprocess.run(["openssl", "pkey", "-pubout", "-outform", "DER"], input=key, capture_output=True,
                          check=True).stdout


def signer(bed, rows, gate):
    p256 = spki("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
    m = seat.Talk(bed, rows("gate to signer"), gate.wire("signer"))

    def mint(host="deps.example.com", key=p256, req=7):
        return message(wire.MINT, u32(req), text(host), text(key))

    def refused(got):
        return got not in ("ended", None) and got[0] == wire.MINT_FAIL
    m.takes("a name to certify", lambda got: got[0] == wire.MINTED, mint())
    for name, host in (("nothing", ""), ("every name", "*"), ("a wildcard", "*.example.com"),
                       ("a name in capitals", "API.example.com"), ("a dot behind", "a.example.com."),
                       ("two dots", "a..b"), ("a blank", "a b"), ("a line ending", "a\r\nb"),
                       ("a zero byte", "a.example.com\0.evil"), ("brackets", "[::1]"), ("a port", "a.example.com:443"),
                       ("a slash", "a/b"), ("IPv6 of another spelling", "2001:DB8::1"), ("a number", "2130706433"),
                       ("a hostile subject", "a,CN=b"), ("UTF-8", "b\u00fccher.example")):
        m.tries(name, refused, mint(host))
    bad = bytearray(p256)
    bad[-1] ^= 1
    other = spki("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1") + b"\0" * 8
    for name, key in (("no key", b""), ("a cut key", p256[:-1]), ("a key that is no point", bytes(bad)),
                      ("the point at infinity", p256[:27] + b"\0" * 64), ("another curve's", other[:91]),
                      ("of Ed25519", spki("-algorithm", "ed25519"))):
        m.tries(name, refused, mint(key=key))
    m.breaks("a long name", mint("a" * 300))
    m.breaks("a key of RSA", mint(key=spki("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")))
    m.breaks("a key with more behind", mint(key=p256 + b"\0"))
    for n in (4, 8, len(mint()) - 1):
        m.breaks("%d bytes of a request" % n, mint()[:n])
    m.breaks("more behind a request", mint() + b"\0")
    m.breaks("a descriptor beside", mint(), fds=(2,))
    for kind in (wire.MINTED, wire.MINT_FAIL, wire.INIT, wire.PEER, wire.PEER_GONE, wire.SIGN, wire.SECRET_GET, 0, 999):
        m.breaks("message %s" % wire.NAMES.get(kind, kind), message(kind, u32(1)))
    n = gate.many(m.wire.fd, mint(), 6000, 4)
    fresh = bed.near.get(OTHER, "/user").status
    rows("gate to signer").row("6000 at once", fresh == 200, "%d taken; a new connection beside: %r" % (n, fresh))
    m.heal()
    tap.wait_for(lambda: m.wire.next(0.1) is None, 10)


# ---- logger ----

def field(f, value):
    value = value.encode() if isinstance(value, str) else value
    return struct.pack(">BH", f, len(value)) + value


def record(kind, counter=5000, *fields):
    body = struct.pack(">BQQ", kind, 1 << 60, counter) + b"".join(fields)
    return u32(len(body)) + body


class Journal(seat.Talk):
    """A gate whose writing is no writing of ours is ended with its journal; the next row is the next gate's."""

    def __init__(self, bed, rows, gate):
        super().__init__(bed, rows, gate.wire("logger"), (wire.WATCH, wire.FLEET_KNOWN_ASK))
        self.fd = tap.wait_for(self.given, 10, 0.05)

    def given(self):
        """The descriptor of its journal, which a gate that has just begun may not have been handed yet."""
        try:
            return self.seat.journal()
        except RuntimeError:
            self.seat.go()
            self.seat.take()
            return None

    def heal(self):
        super().heal()
        self.seat.call("close", self.fd)
        kind, f, fds = self.wire.next(5)
        assert kind == wire.JOURNAL, kind
        self.fd = fds[0]

    def breaks(self, name, *datagrams, fds=()):
        self.spoils(name, datagrams)
        for d in datagrams:
            self.wire.send(d, fds)
        try:
            ended = self.wire.ended(4)
            self.rows.row(name, ended, "the wire did not end")
            if ended:
                self.heal()
        except seat.Ended:
            self.rows.row(name, True)
            self.__init__(self.bed, self.rows, self.bed.gate("coder"))

    def writes(self, name, *records):
        """Appended, and the logger told: the writer is ended, and the log says so."""
        data = b"".join(records)
        self.seat.call("write", self.fd, data, len(data))
        try:
            self.wire.send(message(wire.TICK, u64(len(data))))
        except seat.Ended:
            self.seat.taken = True  # the logger has looked by itself already
        if not self.rows.row(name, self.seat.gone(), "it lives"):
            self.seat.end()
        self.__init__(self.bed, self.rows, self.bed.gate("coder"))


def past_credit(bed, j):
    """Sound records, and more of them than it was ever given credit for: it is ended while the neighbour's
    journal is read on, and its own goes."""
    folder = os.path.join(bed.s.d.audit_dir, "journal")
    part = b"".join(record(DENIED, n, field(RF_CODE, "no_rule"), field(RF_DETAIL, "x" * 900)) for n in range(1, 60))
    try:
        for _ in range(4 * CREDIT // len(part)):
            j.seat.call("write", j.fd, part, len(part))
        j.wire.send(message(wire.TICK, u64(0)))
    except seat.Ended:
        pass  # the logger was quicker
    if not j.rows.row("records past its credit", j.seat.gone(), "it lives"):
        j.seat.end()
    held = tap.wait_for(lambda: sum(os.stat(os.path.join(folder, n)).st_blocks * 512 for n in os.listdir(folder)) <
                        2 * CREDIT, 10, 0.1)
    j.rows.row("what was written past it leaves the disk", held)
    j.__init__(bed, j.rows, bed.gate("coder"))


def restarted(bed, j):
    """The next gate, which has written nothing."""
    j.seat.end()
    return bed.gate("coder")


def logger(bed, rows, gate):
    j = Journal(bed, rows("gate to logger"), gate)
    good = field(RF_CODE, "no_rule")
    j.takes("a tick", None, message(wire.TICK, u64(0)))
    j.takes("a question what is synced", None, message(wire.SYNC, u64(0)))
    data = record(DENIED, 1, good, field(RF_DETAIL, "a whole one"))
    j.seat.call("write", j.fd, data, len(data))
    j.wire.send(message(wire.TICK, u64(len(data))))
    bed.t.ok(bed.s.d.wait_records(1, "denied", detail="a whole one") and not j.seat.gone(0.5), "a whole record is in the log, and its "
             "writer lives")
    j.__init__(bed, rows("gate to logger"), restarted(bed, j))
    for name, data in (
            ("noise", b"\xa5" * 400), ("a record of no length", u32(0)), ("a record of 4 GiB", u32(0xffffffff) + b"x" * 64),
            ("a record of 16 bytes", u32(16) + b"\2" * 16), ("a record of no kind", record(0, 1, good)),
            ("a record of kind 99", record(99, 1, good)), ("a checkpoint", record(CHECKPOINT, 1, good)),
            ("a connection, which is the dialer's to say", record(CONNECTION, 1, good)),
            ("a lifecycle, which is not a gate's to say", record(LIFECYCLE, 1, good)),
            ("another policy's name", record(DENIED, 1, good, field(RF_POLICY, "other"))),
            ("another sandbox's name", record(DENIED, 1, good, field(RF_SANDBOX, "box"))),
            ("the name of a token's sandbox", record(DENIED, 1, good, field(RF_SANDBOX, "rt-1"))),
            ("a field of number 0", record(DENIED, 1, field(0, "x"))),
            ("a field of number 200", record(DENIED, 1, field(200, "x"))),
            ("a field twice", record(DENIED, 1, good, good)),
            ("an empty field", record(DENIED, 1, field(RF_CODE, ""))),
            ("a field longer than its record", record(DENIED, 1, good[:2] + b"\xff" + good[3:])),
            ("a field that is cut", record(DENIED, 1, good[:2])),
            ("a number that is none", record(DENIED, 1, field(RF_STATUS, "4x3"))),
            ("a number with a sign", record(DENIED, 1, field(RF_STATUS, "-1"))),
            ("a number with a zero before", record(DENIED, 1, field(RF_STATUS, "0403")))):
        j.writes(name, data)
    past_credit(bed, j)
    for name, data in (("a tick beyond its credit", message(wire.TICK, u64(1 << 62))),
                       ("a sync beyond its credit", message(wire.SYNC, u64(1 << 62))),
                       ("a tick that is cut", message(wire.TICK, u32(1))),
                       ("a tick with more behind", message(wire.TICK, u64(0), u8(0))),
                       ("the log, to look at", message(wire.WATCH, u8(1))), ("what the fleet's logs say", message(wire.FLEET_KNOWN_ASK))):
        j.breaks(name, data)
    for kind in (wire.JOURNAL, wire.CREDIT, wire.SYNCED, wire.ROTATE, wire.ANCHOR, wire.WATCHED, wire.INIT, wire.PEER,
                 wire.COUNTS, 0, 999):
        j.breaks("message %s" % wire.NAMES.get(kind, kind), message(kind, u64(0)))
    r = rows("gate and its journal")
    r.refused(j.seat, [
        ("cuts its journal", "ftruncate", (j.fd, 0)), ("reads its journal", "pread64", (j.fd, bytearray(64), 64, 0)),
        ("takes O_APPEND away", "fcntl", (j.fd, 4, 0)), ("maps its journal", "mmap", (0, 4096, 3, 1, j.fd, 0))])
    d = bed.s.d
    corrupt = len(d.wait_records(22, "lifecycle", event="journal_corrupt"))
    r.row("each of it is in the log as journal_corrupt", corrupt >= 22, "%d" % corrupt)
    v = d.command("audit", "verify", "-c", d.conf)
    r.row("the log verifies", v.returncode == 0, v.stdout, v.stderr)
    j.seat.go()


# ---- controller ----

def controller(bed, rows, gate):
    """Of a local sandbox: a listener's gate has nobody to talk to there."""
    box = bed.api.ask("POST", "/v1/sandboxes", {"policy": "coder"})["id"]
    own = bed.seats.take("gate", lambda g: box in {w.sandbox for w in g.wires("controller")})
    c = seat.Talk(bed, rows("gate to controller"), own.wire("controller"))
    c.takes("a denial", None, message(wire.DENIED, text("no_rule"), text("t"), u32(1), u8(0)))
    c.takes("a name", lambda got: got[0] == wire.NAME, message(wire.NAME, u32(1), text("api.example.com")))
    for name, data in (
            ("a name in capitals", message(wire.NAME, u32(1), text("API.example.com"))),
            ("an address for a name", message(wire.NAME, u32(1), text("127.0.0.1"))),
            ("a name with a dot behind", message(wire.NAME, u32(1), text("a.example.com."))),
            ("a name with a zero byte", message(wire.NAME, u32(1), text("a\0b"))),
            ("a long name", message(wire.NAME, u32(1), text("a" * 300))),
            ("a name that is cut", message(wire.NAME, u32(1))),
            ("a denial whose code has a line ending", message(wire.DENIED, text("x\r\ny"), text("t"), u32(1))),
            ("a denial of nothing", message(wire.DENIED, text("no_rule"), text("t"), u32(0))),
            ("a denial with a long target", message(wire.DENIED, text("no_rule"), text("t" * 600), u32(1))),
            ("a denial that is cut", message(wire.DENIED, text("no_rule")))):
        c.breaks(name, data)
    c.takes("a question about a token", lambda got: got[0] == wire.PREVIEW_SAID and (got[1].u32(), got[1].u32()) == (7, 0),
            message(wire.PREVIEW, u32(7), text("web"), u8(0), text("pt-" + "a" * 26)))
    c.takes("a word that a preview is seen", None, message(wire.PREVIEW_USED))
    for name, data in (
            ("a question about a token that is cut", message(wire.PREVIEW, u32(7), text("web"), u8(0))),
            ("a question about a long token", message(wire.PREVIEW, u32(7), text("web"), u8(0), text("a" * 65))),
            ("a question about a long service", message(wire.PREVIEW, u32(7), text("a" * 32), u8(0), text("a"))),
            ("a question about a token with a zero byte", message(wire.PREVIEW, u32(7), text("web"), u8(0), text("a\0b"))),
            ("a question about a token, neither once nor always", message(wire.PREVIEW, u32(7), text("web"), u8(2), text("a"))),
            ("a word that a preview is seen, with more", message(wire.PREVIEW_USED, u32(1)))):
        c.breaks(name, data)
    for kind in (wire.PORTER, wire.TURNED_AWAY, wire.INBOUND, wire.PREVIEW_SAID, wire.PREVIEWS, wire.PREVIEW_END, wire.DIAL):
        c.breaks("message %s" % wire.NAMES[kind], message(kind, u8(1), text("web--sb-x.preview.localhost:80"), text("x")))
    for kind in (wire.RUN, wire.RELOAD, wire.STATUS, wire.SANDBOX, wire.PENDING_APPROVAL, wire.KILL, wire.DECIDE, wire.BUILT,
                 wire.BOUND, wire.PORT_OPENED, wire.TRUST, wire.INIT_EXEC, wire.INIT_READY, wire.ACT, 0, 999):
        c.breaks("message %s" % wire.NAMES.get(kind, kind), message(kind, u32(1)))
    own.end()
    bed.api.ask("DELETE", "/v1/sandboxes/" + box)


# ---- parent, kernel ----

def parent(bed, rows, gate):
    """What only others may say to the parent ends the gate, which is started again."""
    r = rows("gate to parent")
    gate = gate or bed.gate("coder")
    gate.says(message(wire.LOG, u8(1), text("a whole line")))
    bed.t.ok(not gate.gone(0.5) and "a whole line" in bed.s.d.diagnostics(), "a whole log line is taken, and its writer lives")
    for kind, *fields in (
            (wire.READY,), (wire.FAILED, text("x")), (wire.INIT, u32(1)), (wire.PEER, u32(1)), (wire.SANDBOX, text("x"), text("other"), u32(0)),
            (wire.SANDBOX_GONE, text("x")), (wire.LABELS, text("sb-x"), u32(0)), (wire.RELOAD,), (wire.STATUS,), (wire.METERS_ALL,), (wire.VERIFY,),
            (wire.PORT_OPEN, u32(1), text("127.0.0.1"), u32(0)), (wire.PORT_OWN, u32(80), u8(1)),
            (wire.STORE_OPEN, u32(1), text("github")), (wire.STORE_STATE, text("github"), u8(1), text("")),
            (wire.TOKEN_GET, u32(1), text("github")), (wire.TOKEN_SAVE, u32(1), text("github"), text("x")),
            (wire.SECRET_TRIED, u32(1), u8(1), u32(1), text("")), (wire.LISTENERS, text("x"), u32(0)),
            (wire.NOTICE, u32(0), u64(0), u64(0), text(""), text(""), text("")), (wire.CARRIED, u32(1), u8(1), text("")),
            (wire.ANCHOR, text("x")), (wire.COUNTS, u32(0)), (wire.REVOKED, u64(1 << 40), u32(0)), (wire.ACTED, u32(1)),
            (wire.SECRET_TRY, u32(1), text("github")), (999,)):
        gate = gate or bed.gate("coder")
        name = wire.NAMES.get(kind, kind)
        gate.says(message(kind, *fields))
        if not r.row("message %s" % name, gate.gone(), "it lives"):
            gate.end()
        gate = None
    for name, data in (("a message of 3 bytes", b"\0\5\0"), ("a log line that is cut", message(wire.LOG, u8(1))),
                       ("a log line with a descriptor", None)):
        gate = bed.gate("coder")
        if data is None:
            gate.says(message(wire.LOG, u8(1), text("x")), (2,))
        else:
            gate.says(data)
        if not r.row(name, gate.gone(), "it lives"):
            gate.end()
    gate = bed.gate("coder")
    now = gate.wire("signer")
    for n in range(300):
        try:
            now = now.renew()
        except seat.Ended:
            break
    r.row("wires without end", gate.gone() and 200 < n < 300, "%d" % n)
    log_lines(bed, r, bed.gate("coder"))


def log_lines(bed, r, gate):
    """What the operator reads stays readable: so many lines a second of one process, and the number of the rest."""
    start = time.monotonic()
    for n in range(FLOOD):
        gate.says(message(wire.LOG, u8(1), text("flooded %d" % n)))
    time.sleep(1.1)  # the second that the bound speaks of
    gate.says(message(wire.LOG, u8(1), text("after it")))
    tap.wait_for(lambda: "after it" in bed.s.d.diagnostics(), 10)
    lines = bed.s.d.diagnostics().count("flooded")
    most = LINES_A_SECOND * (int(time.monotonic() - start) + 2)
    r.row("log lines without end", 0 < lines <= most and "lines were left out" in bed.s.d.diagnostics() and
          not gate.gone(0.5), "%d written, at most %d" % (lines, most))
    gate.end()


def kernel(bed, rows, gate):
    r = rows("gate to kernel")
    r.refused(gate, seat.calls_of_all())
    uid = gate.call("getuid")
    own = 61705 if os.geteuid() == 0 else os.geteuid()
    r.row("its uid", uid == own, "%d" % uid)
    (path,) = [p for p in [bed.s.d.secrets["github"]["file"]]]
    r.refused(gate, [("opens a secret", "openat", (seat.AT_FDCWD, path.encode() + b"\0", 0, 0))])
    r.row("connects by MSG_FASTOPEN from a message", gate.call("sendmsg", 3, bytes(56), 0x20000000) == -errno.EPERM)


def everything(t):
    bed = seat_bed.Bed(t)

    def rows(name):
        return seat.Rows(t, name, bed.neighbour)
    gate = None
    for part in seat.chosen((dialer, signer, logger, controller, kernel, parent, dialer_tokens)):
        if part == dialer_tokens:
            t.part(part, bed, rows)
            continue
        if gate is None or part == controller:  # the one before was ended for what it wrote
            gate = bed.gate("coder")
        t.part(part, bed, rows, gate)
    bed.s.clean()
    seat.listed(t, "hub")


def main(t):
    person.each(t, everything, together=True)


tap.run(main, timeout=240)
