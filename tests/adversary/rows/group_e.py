"""E. TLS on both sides."""
import re
import ssl
import subprocess

from harness import ca, client, shapes

from . import hello as tls
from .bed import EVIL, OTHER, PLAIN
from .case import Case, Row, Sweep
from .send import Out, client_hello, get, http, sni

ALERT = tls.UNRECOGNIZED_NAME
NUL_NAME = b"nul-san.example.com\0.evil.example.org"


def der_san(*names):
    """A subjectAltName of raw dNSName bytes."""
    inner = b"".join(b"\x82" + bytes([len(n)]) + n for n in names)
    return "DER:30" + "%02x" % len(inner) + inner.hex()


BAD = {  # host: (options of issue, names, a word of the record's detail)
    "expired": ({"expired": True}, None, "expired"),
    "not-yet": ({"not_yet": True}, None, "not yet"),
    "self-signed": ({"self_signed": True}, None, "self"),
    "wrong-name": ({}, ["else.example.com"], "name"),
    "parent-name": ({}, ["example.com"], "name"),
    "wildcard-deep": ({}, ["*.com"], "name"),
    "cn-only": ({"cn_only": True}, None, "name"),
    "stranger": (None, None, ""),
    "client-usage": ({"usage": "clientAuth"}, None, "purpose"),
    "weak-key": ({"key": ("rsa:1024",)}, None, ""),
    "sha1": ({"digest": "-sha1"}, None, ""),
    "nul-san": ({"san": der_san(NUL_NAME)}, None, "name"),
    "nul-end": ({"san": der_san(b"nul-end.example.com\0")}, None, "name"),
    "other-name": ({"san": "otherName:1.2.3.4;UTF8:other-name.example.com"}, None, "name"),
    "email-name": ({"san": "email:x@email-name.example.com"}, None, "name"),
    "uri-name": ({"san": "URI:https://uri-name.example.com/"}, None, "name"),
    "many-names": ({}, ["n%05d.example.com" % i for i in range(10000)] + ["many-names.example.com"],
                   ""),
}


def bad_origins(bed):
    """Origins with such certificates, each under a rule without and one with a credential."""
    stranger = ca.Authority(bed.test.path("stranger"), "Some Other CA")
    for kind, (options, names, _) in BAD.items():
        issuer = stranger if options is None else bed.d.ca
        cert = issuer.issue(*(names or [kind + ".example.com"]), **(options or {}))
        host = kind + ".example.com"
        bed.origins.append(bed.s.add(host, shapes.echo, cert=cert))
        bed.s.rule(allow=host)
        bed.s.rule(allow=host + "/keyed/**", **{"with": {"bearer": "openai"}})


class Upstream:
    """502 upstream_tls, the reason on record, no HTTP byte sent (the handshake's are not counted)."""

    def __init__(self, word):
        self.word = word

    def __call__(self, bed, out, records):
        ends = [(r["kind"], r.get("code")) for r in records]
        if (out.status, out.code) != (502, "upstream_tls") or ends != [
                ("admitted", "ok"), ("aborted", "upstream_tls")]:
            return "%r %s" % (out, ends)
        if self.word not in str(records[1].get("detail")).lower():
            return "detail %r" % records[1].get("detail")
        return None


def bad_cases(kinds):
    return [(k + p, get(p, host=k + ".example.com"), Upstream(BAD[k][2]))
            for k in kinds for p in ("/", "/keyed/x")]


def no_bytes(bed, out, _records):
    got = [(o.names[0], o.bytes_in) for o in bed.origins if o.bytes_in and
           o.names[0].split(".")[0] in BAD]
    return "HTTP bytes at %s" % got if got else None


def refused(message, alert, **kw):
    """Ended with this alert and one tls_refused record."""
    return client_hello(message, **kw), "alert", alert, "client_tls_refused"


def leaf(host, names):
    """The leaf for host: verified, and for these names alone."""
    def send(bed):
        with bed.gate.tls(host, context=bed.context) as st:
            cert = st.sock.getpeercert()
            st.send("GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
            r = st.reply()
        return Out(r.status, reply=r, more=[cert.get("subjectAltName"), cert.get("subject")])

    def check(bed, out, _records):
        subject = dict(x[0] for x in out.more[1] or ())
        if out.status != 200 or out.more[0] != names or len(subject.get("commonName", "")) > 64:
            return "%r %s" % (out, out.more)
        return None
    return Case(host[:40], send, check, event="completed")


def resumed(version, second):
    """A session of one name offered for a second one."""
    def send(bed):
        ctx = ssl.create_default_context(cafile=bed.gate.cafile)
        ctx.check_hostname = False
        ctx.minimum_version = ctx.maximum_version = version
        with bed.gate.tls(PLAIN, context=ctx) as st:
            st.ask("GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % PLAIN)
            session = st.sock.session
        r, st = bed.gate.connect(second + ":443")
        with st:
            st.sock = ctx.wrap_socket(st.sock, server_hostname=second, session=session)
            reused, names = st.sock.session_reused, st.sock.getpeercert()
            r = st.ask("GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % second)
        return Out(r.status, reply=r, more=[reused, names])

    def check(bed, out, _records):
        if out.status != 200 or second != PLAIN and out.more[0]:
            return "%r reused=%s" % (out, out.more[0])
        return None
    return Case("%s, %s" % (version.name, second), send, check, event="completed")


def s_client(*args, stdin=b""):
    def send(bed):
        r = subprocess.run(["openssl", "s_client", "-proxy", bed.address, "-connect", PLAIN + ":443",
                            "-servername", PLAIN, "-CAfile", bed.gate.cafile, "-ign_eof"] + list(args),
                           input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
        return Out(200, more=[r.stdout.decode("latin-1")])
    return send


def renegotiating(bed):
    """s_client asks for a new handshake on its R command and waits for what comes of it."""
    p = subprocess.Popen(["openssl", "s_client", "-proxy", bed.address, "-connect", PLAIN + ":443",
                          "-servername", PLAIN, "-CAfile", bed.gate.cafile, "-tls1_2"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = b""
    try:
        while b"Extended master secret" not in text:
            text += p.stdout.read1(65536)
        p.stdin.write(b"R\n")
        p.stdin.flush()
        while b"alert" not in text and b"closed" not in text:
            part = p.stdout.read1(65536)
            if not part:
                break
            text += part
    finally:
        p.kill()
        p.communicate()
    return Out(200, more=[text.decode("latin-1")])


def says(word, never=()):
    def check(bed, out, _records):
        text = out.more[0]
        bad = [n for n in never if n in text] + re.findall("Max Early Data: [1-9].*", text)
        return None if word in text and not bad else "%s in: %s" % (bad, text)
    return check


LAST = b"GET / HTTP/1.1\r\nHost: deps.example.com\r\nConnection: close\r\n\r\n"
ECH = tls.extension(0xFE0D, b"\0\0\1\0\1\7\0\x20" + b"k" * 32 + b"\0\x90" + b"p" * 144)
GREASE = tls.extension(tls.GREASE, b"\0") + tls.extension(0x0A0A, b"")
NAMED = tls.server_name(PLAIN.encode())
HUGE = tls.records(tls.hello(NAMED + b"".join(tls.extension(0x7000 + i, b"z" * 16000)
                                              for i in range(4)), ciphers=tuple(range(1, 30000))))
TWO_NAMES = tls.extension(0, tls.block(b"\0" + tls.block(PLAIN.encode()) + b"\0" +
                                       tls.block(EVIL.encode())))
TRAILING = tls.extension(0, tls.block(b"\0" + tls.block(PLAIN.encode())) + b"x")


def by_byte(data):
    return [data[i:i + 1] for i in range(len(data))]


ROWS = [
    Row("E1", "a bad certificate of the origin",
        Sweep("kinds", bad_cases([k for k in BAD if not k.startswith(("nul", "other", "email", "uri",
                                                                     "many"))]), event="aborted"),
        Case("no HTTP byte at any of them", get(), no_bytes, event="completed")),
    Row("E2", "a NUL or another type in its names",
        Sweep("kinds", bad_cases(["nul-san", "nul-end", "other-name", "email-name", "uri-name"]),
              event="aborted"),
        Case("no HTTP byte at any of them", get(), no_bytes, event="completed")),
    Row("E3", "a certificate of 10,000 names",
        Sweep("kinds", bad_cases(["many-names"]), event="aborted")),
    Row("E4", "old versions and ciphers",
        Sweep("versions", [("0x%04x" % v,) + refused(tls.hello(NAMED, version=v), a)
                           for v, a in ((0x0300, 40), (0x0301, 70), (0x0302, 70))],
              event="tls_refused"),
        Sweep("ciphers", [("0x%04x" % c,) + refused(tls.hello(NAMED, ciphers=(c,)), 40) for c in (
            0x000A, 0x002F, 0x0035, 0x009C, 0x0005, 0xC012, 0xC02F, 0xC013, 0x0000, 0xC006,
            0xC009, 0xC00A, 0xC023, 0xC024, 0xC0AC)],  # CBC and CCM with our own kind of key
            event="tls_refused"), twin=client_hello(tls.hello(NAMED))),
    Row("E7", "names in a ClientHello",
        Sweep("no host names", [
            (repr(n), sni(n), "alert", ALERT, "malformed_host") for n in (
                b"127.0.0.1", b"[::1]", b"2130706433", b"0x7f.1", b"deps.example.com:443", b".", b"..",
                b"*.example.com", b"https://deps.example.com", b"deps.example.com/", b" ",
                b"a" * 64 + b".com", b"x." * 127 + b"com", b"\xff" * 16)]),
        Sweep("broken extensions", [
            (w, client_hello(tls.hello(e)), "alert", tls.DECODE_ERROR, "malformed_host") for w, e in (
                ("two names", TWO_NAMES), ("trailing", TRAILING), ("empty", tls.extension(0, b"")),
                ("another type", tls.server_name(PLAIN.encode(), 1)),
                ("no name", tls.extension(0, tls.block(b""))), ("empty name", tls.server_name(b"")))]),
        Case("the outer name counts beside ECH", sni(EVIL.encode(), more=ECH), "alert", ALERT,
             "authority_mismatch"),
        twin=client_hello(tls.hello(NAMED + ECH + GREASE))),
    Row("E7", "no name after CONNECT: the target is the authority",
        Case("a host of no rule", client_hello(tls.hello(), EVIL), 403, "no_rule"),
        twin=client_hello(tls.hello())),
    Row("E8", "leaves", leaf(PLAIN, (("DNS", PLAIN),)),
        leaf("a.wild.example.net", (("DNS", "a.wild.example.net"),)), twin=get()),
    Row("E12", "sessions stay with their name",
        *[resumed(v, h) for v in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
          for h in (PLAIN, OTHER)]),
    Row("E13", "no early data",
        Case("a ticket allows none", s_client("-tls1_3", stdin=LAST),
             says("Early data was not sent"), event="completed")),
    Row("E14", "renegotiation, compression",
        Case("renegotiation", renegotiating, says("no renegotiation"), event="tls_refused"),
        Case("compression", s_client("-tls1_2", "-comp", stdin=LAST), says("Compression: NONE"),
             event="completed")),
    Row("E15", "ALPN that we do not speak",
        Sweep("alone", [(n.decode("latin-1"),) + refused(
            tls.hello(NAMED + tls.alpn(n)), tls.NO_APPLICATION_PROTOCOL) for n in (
                b"h3", b"spdy/3.1", b"http/1.0", b"h2c", b"HTTP/1.1", b"http/1.1\0", b"acme-tls/1")],
            event="tls_refused"),
        twin=client_hello(tls.hello(NAMED + tls.alpn(b"h3", b"http/1.1")))),
    Row("E16", "no tunnel in the tunnel",
        *[Case(w, http("CONNECT %s:443 HTTP/1.1\r\nHost: %s\r\n\r\n" % (w, h)), 405, "connect_inside")
          for w, h in (("{E}", "{E}:443"), ("{P}", "{P}"), ("{O}", "{P}"))]),
    Row("E17", "a ClientHello in pieces, and one too large",
        Case("the name in pieces of a record each",
             client_hello(tls.hello(tls.server_name(EVIL.encode())), cut=1), "alert", ALERT,
             "authority_mismatch"),
        Case("the name in pieces of a segment each",
             client_hello(tls.hello(tls.server_name(EVIL.encode())), pieces=by_byte), "alert", ALERT,
             "authority_mismatch"),
        Case("above 64 KiB", client_hello(HUGE), lambda bed, out, records: None if
             out.status != 200 and [r.get("code") for r in records] == ["client_tls_refused"] else
             "%r %s" % (out, records), event="tls_refused"),
        twin=client_hello(tls.hello(NAMED), cut=7)),
]
