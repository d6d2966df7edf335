"""B. Framing, desync, hop-by-hop: where a message ends, and what of it is for whom."""
import itertools

from .bed import KEYED, ODD, PLAIN, settle
from .case import Case, Row, Sweep, ended
from .send import Out, answered, clear, connect, forward, get, http, read

SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: {P}\r\n\r\n"
CHUNK = "0\r\n\r\n" + SMUGGLED
FRAMING, TWO, HEADER, LINE = ((400, "framing"), (501, "transfer_coding"), (400, "bad_header"),
                              (400, "bad_request_line"))
UPSTREAM = (502, "upstream_protocol")


def post(fields, body="", host=PLAIN, line="POST /v1/p HTTP/1.1"):
    return http(line + "\r\nHost: " + host + "\r\n" + fields + "\r\n" + body, host)


def te(value, more="", version="1.1"):
    return post("Transfer-Encoding:%s\r\n%s" % (value, more), CHUNK,
                line="POST /v1/p HTTP/" + version)


def chunks(body, host=PLAIN):
    return post("Transfer-Encoding: chunked\r\n", body + SMUGGLED, host)


def on_both(cases, **kw):
    """The same at an origin without and at one with a credential."""
    return [Sweep(what, [(w, make(host)) + want for w, make, want in rows], **kw)
            for what, rows in cases for host in (PLAIN, KEYED)]


def codings():
    """Every way to write a coding that some reader takes for chunked."""
    for v in ("xchunked", "chunked, identity", "chunked, chunked", "chunked,", ",chunked",
              "identity, chunked", "gzip, chunked", "chunked;q=1", "chunked ;", "\"chunked\"",
              "'chunked'", "chunkedx", "chunked-false", "chun ked", "identity", "gzip", "x", "",
              "chunked\u00a0", "\u00a0chunked", "c h u n k e d", "[chunked]", "chunked=1", "chunke",
              "hunked", "0", "chunked/1", "deflate", "compress, chunked", "chunked\tidentity"):
        yield repr(v), te(" " + v), TWO[0], TWO[1]
    for b in list(range(1, 9)) + [11, 12] + list(range(14, 32)) + [127]:
        yield "byte 0x%02x before it" % b, te(" " + chr(b) + "chunked"), 400, "bad_header"
        yield "byte 0x%02x after it" % b, te(" chunked" + chr(b)), 400, "bad_header"


def lengths():
    for v in ("+1", "-1", "0x1", "1_0", "1.0", "1 1", "1,1", "1, 1", "", "\"1\"", "1e1", "٤",
              "1;", "a", "0b1", "1\u00a0", "1" * 19, "0" * 19, "18446744073709551615",
              "18446744073709551616", "18446744073709551617", "9223372036854775808",
              "99999999999999999999999999", "4294967296 ", "  "):
        if v.strip() == "4294967296":
            continue
        text = v if isinstance(v, bytes) else v.encode("utf-8").decode("latin-1")
        yield repr(v), post("Content-Length: %s\r\n" % text, SMUGGLED), 400, "framing"


def endings():
    """All 4³ line endings after the line, a field and the head; one is right."""
    kinds = {"CRLF": "\r\n", "LF": "\n", "CR": "\r", "CRX": "\r\r\n"}
    for a, b, c in itertools.product(kinds, repeat=3):
        if (a, b, c) == ("CRLF",) * 3:
            continue
        data = "GET /e HTTP/1.1" + kinds[a] + "Host: {P}" + kinds[b] + "X: y" + kinds[c] + "\r\n"
        yield ("%s %s %s" % (a, b, c), http(data + "\r\n\r\n"), 400, first_offence(data))


def first_offence(data):
    """A bare LF ends the reading at once; a bare CR is found when the lines are read."""
    bare = [i for i, c in enumerate(data) if c == "\n" and data[i - 1] != "\r"]
    at = bare[0] if bare else next(i for i, c in enumerate(data)
                                   if c == "\r" and data[i + 1:i + 2] != "\n")
    return "bad_header" if "\r\n" in data[:at] else "bad_request_line"


def names():
    for n in ("", " X", "X ", "X Y", "\tX", "X\t", "X(", "X)", "X<", "X@", "X,", "X;", "X\\", "X\"",
              "X/", "X[", "X]", "X?", "X=", "X{", "X}", "\xe9", "X\xff", "X\x7f", "X\x01", ":X"):
        yield repr(n), get(fields=n + ": 1\r\n"), 400, "bad_header"
    for n in ("Content_Length", "Transfer_Encoding", "content_length", "X_Api_Key", "Proxy_Authorization",
              "Content_Type", "Content_Encoding", "X_Forwarded_For", "x_http_method_override",
              "X-Forwarded_Host", "X_GOOG_API_KEY", "Private_Token"):
        yield n, get(fields=n + ": 1\r\n"), 400, "bad_header"


def values():
    """Every byte in a value; those that no value has are refused, the rest arrives as it is."""
    for b in range(256):
        if b in (0, 10, 13) or b < 32 and b != 9 or b == 127:
            yield "0x%02x" % b, http(b"GET / HTTP/1.1\r\nHost: {P}\r\nX-V: a" + bytes([b]) +
                                     b"b\r\n\r\n"), 400, "bad_header"


def extensions():
    for e in (";a\nb", ";\x00", ";a\x01", ";a\x7f", ";a\x80", ";" + "a" * 4000, "\x0b;a", ";a\rb",
              ";", ";a;", ";=a", ";a=", ";a=\"b", ";a=\"b\"c", ";a b", ";a=\"b\\\"", " ;a", "\t;a", ";a\r\r\n", ",a", "a;\xff"):
        yield repr(e[:20]), chunks("1" + e + "\r\nx\r\n0\r\n\r\n"), 400, "framing"


SIZES = ("0x1", "1_0", "+1", "-1", "1 ", " 1", "", "1\t", "g", "1.0", "0" * 9 + "1", "1" * 16,
         "FFFFFFFFFFFFFFFFF", "\x0b1", "１", "#1", "1\x00", "0x", "1,", "x1", "1\r1")


def sizes(host=PLAIN):
    for s in SIZES:
        text = s.encode("utf-8").decode("latin-1")
        yield repr(s[:20]), chunks(text + "\r\nx\r\n0\r\n\r\n", host), 400, "framing"
    yield "none for the last", chunks("1\r\nx\r\n\r\n\r\n", host), 400, "framing"


def ends_of_data(host=PLAIN):
    for s in ("1\r\nxyz0\r\n\r\n", "1\ryx\r\n0\r\n\r\n", "1\r\nx\ry0\r\n\r\n", "1\r\nxy\n0\r\n\r\n",
              "1\r\nxy0\r\n\r\n", "1\r\nx\n0\r\n\r\n", "1\r\nx\r0\r\n\r\n", "1\r\nx0\r\n\r\n",
              "3\r\nabc\n\r\n0\r\n\r\n", "1\nx\n0\n\n", "1\r\nx\r\n0\n\r\n", "1\r\nx\r\r\n0\r\n\r\n",
              "2\r\nx\r\n0\r\n\r\n", "1\r\nx\r\n0\r\r\n\r\n"):
        yield repr(s), chunks(s, host), 400, "framing"


def trailer_lines():
    for line in ("X A: b", "X", " X: b", ": b", "X: b\x01", "X\x00: b", "X: a\nY: b", "X : b",
                 "Content_Length: 4", "Content-Length: 4",
                 "Transfer-Encoding: chunked", "Host: evil.example.org", "X: b\rY: c"):
        yield repr(line), chunks("1\r\nx\r\n0\r\n" + line + "\r\n\r\n"), 400, "framing"


def pipelined(bed):
    """100 requests at once, each odd one denied: each is decided alone and answered in order."""
    n = 100
    with bed.gate.tls("paths.example.com", context=bed.context) as st:
        st.send("".join("GET /pub/%s%d HTTP/1.1\r\nHost: paths.example.com\r\n\r\n" % (
            "secret/" if i % 2 else "p", i) for i in range(n)))
        got = [st.reply() for _ in range(n)]
    return Out(200, None, reply=None, more=[(r.status, r.code) for r in got])


def in_turn(bed, out, records):
    want = [(403, "denied_by_rule") if i % 2 else (200, None) for i in range(100)]
    settle(lambda: records.extend(ended(bed.log.new())) or
           [r["kind"] for r in records].count("completed") >= 50)
    kinds = [r["kind"] for r in records]
    at = [q.path for q in bed.paths.requests if q.path.startswith("/pub/p")][-50:]
    if out.more != want or at != ["/pub/p%d" % i for i in range(0, 100, 2)]:
        return "%s %s" % (out.more, at)
    if (kinds.count("admitted"), kinds.count("denied")) != (50, 50):
        return "%s" % [(k, kinds.count(k)) for k in set(kinds)]
    return None


def arrives(check, send, event="completed"):
    """A case that is served; check(request at the origin, reply) -> complaint."""
    def judge(bed, out, records):
        if out.status != 200:
            return repr(out)
        o = max((o for o in bed.origins if o.requests), key=lambda o: o.requests[-1].time)
        why = check(o.requests[-1], out.reply)
        kinds = [r["kind"] for r in records]
        return why or (None if kinds == ["admitted", "completed"] else "records %s" % kinds)
    return send, judge


def without(*gone):
    def check(q, _reply):
        there = {n.lower() for n, _ in q.headers} & {g.lower() for g in gone}
        return "arrived: %s" % sorted(there) if there else None
    return check


def one_credential(q, _reply):
    names = [n for n, _ in q.credentials()]
    return None if names == ["authorization"] else "credentials %s" % names


def closes(send):
    """Served, and the upstream connection is told that nothing follows."""
    def judge(bed, out, _records):
        q = bed.plain.requests[-1]
        if out.status != 200 or q.all("connection") != ["close"] or q.body_len != 5:
            return "%r %s %d" % (out, q.all("connection"), q.body_len)
        return None
    return send, judge


def reply(text, head="HTTP/1.1 200 OK\r\n", body="hello"):
    return answered((head + text + "\r\n" + body).encode("latin-1"))


def smuggling_replies():
    yes = "Content-Length: 5\r\n"
    for what, text, body in (
            ("CL and TE", yes + "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
            ("two CL", yes + "Content-Length: 6\r\n", "hello!"), ("CL list", "Content-Length: 5, 6\r\n", "hello"),
            ("CL and TE with a space", yes + "Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), ("CL +5", "Content-Length: +5\r\n", ""),
            ("CL of 19 digits", "Content-Length: 0000000000000000005\r\n", "hello"),
            ("folded", "X-A: b\r\n c\r\n" + yes, "hello"), ("bare LF", "X-A: b\nX-B: c\r\n" + yes, ""),
            ("NUL", "X-A: b\0\r\n" + yes, "hello"), ("bare CR", "X-A: b\rX: c\r\n" + yes, "hello"),
            ("empty name", ": b\r\n" + yes, "hello"), ("no colon", "X-A\r\n" + yes, "hello"),
            ("twin of CL", "Content_Length: 3\r\n" + yes, "hello")):
        yield (what, reply(text, body=body)) + UPSTREAM
    for coding in ("xchunked", "gzip, chunked", "identity", "chunked, identity"):
        yield (coding, reply("Transfer-Encoding: %s\r\n" % coding, body="0\r\n\r\n")) + UPSTREAM
    for what, head in (("LF line", "HTTP/1.1 200 OK\n"), ("version", "HTTP/2.0 200 OK\r\n"),
                       ("0.9", "hello\r\n"), ("status 2000", "HTTP/1.1 2000 OK\r\n"),
                       ("status 20", "HTTP/1.1 20 OK\r\n"), ("no status", "HTTP/1.1  OK\r\n"),
                       ("status 099", "HTTP/1.1 099 OK\r\n"), ("tab", "HTTP/1.1\t200 OK\r\n"),
                       ("lower case", "http/1.1 200 OK\r\n"), ("leading CRLF", "\r\nHTTP/1.1 200 OK\r\n"),
                       ("HTTP/1.10", "HTTP/1.10 200 OK\r\n")):
        yield (what, reply(yes, head=head)) + UPSTREAM


class Aborted:
    """The reply had begun when it broke: cut, and recorded so."""

    def __init__(self, code):
        self.code = code

    def __call__(self, bed, out, records):
        kinds = [(r["kind"], r.get("code")) for r in records if r["kind"] != "admitted"]
        if out.status == 200 and not out.reply.truncated or kinds != [("aborted", self.code)]:
            return "%r truncated=%s %s" % (out, out.reply and out.reply.truncated, kinds)
        return None


def never_pooled(bed):
    """After a reply with bytes behind it the next request has a connection of its own."""
    bed.odd.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n" \
        b"Content-Length: 6\r\n\r\npoison"
    first = get(host=ODD)(bed)
    bed.odd.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    second = get(host=ODD)(bed)
    return Out(second.status, more=[first.reply and first.reply.body,
                                    second.reply and second.reply.body])


def interims(count, status="103 Early Hints", final=True):
    text = "HTTP/1.1 %s\r\nX-Hint: 1\r\n\r\n" % status * count
    return answered((text + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").encode())


def continued(bed):
    """Expect: 100-continue is ours to answer: once, and before the origin has all of it."""
    with bed.gate.tls(PLAIN, context=bed.context) as st:
        st.send("POST /c HTTP/1.1\r\nHost: %s\r\nContent-Length: 5\r\n"
                "Expect: 100-continue\r\n\r\n" % PLAIN)
        head = st.until(b"\r\n\r\n")
        st.send("hello")
        out = read(st)
    out.more = [head]
    return out


def continued_once(bed, out, _records):
    q = bed.plain.requests[-1]
    if out.status != 200 or not out.more[0].startswith(b"HTTP/1.1 100 ") or out.reply.interim or \
            q.get("expect") is not None:
        return "%r interim=%s expect=%s" % (out, out.reply.interim, q.get("expect"))
    return None


FLOOD = "".join("X-%d: 1\r\n" % i for i in range(101))
UPGRADE = "Connection: Upgrade\r\nUpgrade: %s\r\n"

ROWS = [
    Row("B1", "Content-Length and Transfer-Encoding",
        *on_both((("both, in each order", [
            ("CL TE", lambda h: post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", CHUNK, h),
             FRAMING),
            ("TE CL", lambda h: post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", CHUNK, h),
             FRAMING),
            ("CL 0 TE", lambda h: post("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", CHUNK,
                                       h), FRAMING),
            ("TE bad CL", lambda h: post("Transfer-Encoding: chunked\r\nContent-Length: x\r\n", CHUNK,
                                         h), FRAMING),
            ("TE x CL", lambda h: post("Transfer-Encoding: x\r\nContent-Length: 4\r\n", CHUNK, h),
             FRAMING)]),)),
        twin=post("Content-Length: 5\r\n", "hello")),
    Row("B2", "obfuscated Transfer-Encoding", Sweep("codings", list(codings())),
        Sweep("fields", [
            ("a space before the colon", post("Transfer-Encoding : chunked\r\n", CHUNK)) + HEADER,
            ("a space before the name", post(" Transfer-Encoding: chunked\r\n", CHUNK)) + HEADER,
            ("a name with a vertical tab", post("Transfer-Encoding\x0b: chunked\r\n", CHUNK)) + HEADER,
            ("a name with an underscore", post("Transfer_Encoding: chunked\r\n", CHUNK)) + HEADER,
            ("twice", te(" chunked", "Transfer-Encoding: chunked\r\n")) + FRAMING,
            ("twice, false", te(" chunked", "Transfer-Encoding: chunked-false\r\n")) + FRAMING,
            ("twice, identity", te(" chunked", "Transfer-Encoding: identity\r\n")) + FRAMING,
            ("twice, first odd", te(" x", "Transfer-Encoding: chunked\r\n")) + FRAMING,
            ("in HTTP/1.0", te(" chunked", version="1.0")) + FRAMING]),
        twin=post("Transfer-Encoding:\t chunked\r\n", "5\r\nhello\r\n0\r\n\r\n")),
    Row("B3", "a body where an origin expects none",
        Sweep("the connection ends after it", [
            (m,) + closes(post("Content-Length: 5\r\n", "hello", line=m + " /p HTTP/1.1"))
            for m in ("GET", "DELETE", "OPTIONS")], event="completed"),
        twin=post("Content-Length: 5\r\n", "hello")),
    Row("B4", "Content-Length twice, in a list, with a sign", Sweep("values", list(lengths())),
        Sweep("twice", [("equal", post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello")) + FRAMING,
                        ("other", post("Content-Length: 0\r\nContent-Length: 50\r\n", SMUGGLED)) +
                        FRAMING]), twin=post("Content-Length: 5\r\n", "hello")),
    Row("B5", "Content-Length above all counters",
        Sweep("values", [(v, post("Content-Length: %s\r\n" % v, "x")) + FRAMING for v in (
            "18446744073709551616", "9223372036854775808", "18446744073709551621",
            "100000000000000000000000000000005", "1" + "0" * 18, "05", "00", "0" * 17 + "5")]),
        twin=post("Content-Length: 5\r\n", "hello")),
    Row("B6", "folded fields",
        Sweep("folds", [(repr(f), post(f, CHUNK)) + HEADER for f in (
            "X-A: b\r\n c\r\n", "X-A: b\r\n\tc\r\n", "Transfer-Encoding:\r\n chunked\r\n",
            "Content-Length: 1\r\n 0\r\n", "X-A:\r\n \r\n")])),
    Row("B7", "bare LF, bare CR", Sweep("all line endings", list(endings()))),
    Row("B8", "nothing before the request line",
        Sweep("bytes", [(repr(p), http(p + "GET / HTTP/1.1\r\nHost: {P}\r\n\r\n")) + LINE
                        for p in ["\r\n" * n for n in range(1, 9)] + ["\n", "\r", " ", "\t", "\0",
                                                                      "\r\n\r\nGET"]]),
        Sweep("at the explicit port", [
            (repr(p), forward(p + "GET http://{C}/ HTTP/1.1\r\nHost: {C}\r\n\r\n")) + LINE
            for p in ("\r\n", "\n", "\r\n\r\n")])),
    Row("B9", "empty, spaced, underscored names", Sweep("names", list(names())),
        Case("no colon", get(fields="X-A\r\n"), *HEADER), twin=get(fields="my_own_name: 1\r\n")),
    Row("B10", "controls in a value", Sweep("every byte", list(values())),
        twin=get(fields="X-V: \xe9\xff\tok!\"#$\r\n")),
    Row("B11", "chunk extensions", Sweep("extensions", list(extensions()), left="bytes",
                                         event="aborted"),
        twin=post("Transfer-Encoding: chunked\r\n", "5;a=\"b c\";d=e;f\r\nhello\r\n0;x\r\n\r\n")),
    Row("B12", "chunk sizes", Sweep("sizes", list(sizes()), left="bytes", event="aborted"),
        Sweep("with a credential", list(sizes(KEYED)), left="bytes",
              event="denied|aborted"),
        twin=post("Transfer-Encoding: chunked\r\n", "00000005\r\nhello\r\n0\r\n\r\n")),
    Row("B13", "chunk data without its CRLF",
        Sweep("ends", list(ends_of_data()), left="bytes", event="aborted"),
        Sweep("with a credential", list(ends_of_data(KEYED)), left="bytes",
              event="denied|aborted"),
        twin=post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n")),
    Row("B14", "request trailers", Sweep("no field lines", list(trailer_lines()), left="bytes",
                                         event="aborted"),
        twin=post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n")),
    Row("B15", "each pipelined request is decided alone",
        Case("100 at once, odd ones denied", pipelined, in_turn, event="completed")),
    Row("B16", "bytes after CONNECT before its answer",
        Sweep("bytes", [(repr(b), forward("CONNECT {P}:443 HTTP/1.1\r\nHost: {P}:443\r\n\r\n" + b), 400,
                         "early_data") for b in ("x", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01", "\r\n",
                                                 SMUGGLED)]),
        Case("CONNECT with a body", connect(PLAIN + ":443", extra="Content-Length: 4\r\n"), 400,
             "early_data"), twin=connect(PLAIN + ":443")),
    Row("B17", "no tunnel past the proxy: Upgrade, h2c, prior knowledge",
        Sweep("Upgrade", [(u, get(fields=UPGRADE % u), 501, "upgrade") for u in (
            "HTTP/2.0", "h2", "foo", "irc/6.9", "h2c, foo", "h2c, websocket", "websocket, h2c", "h2c,", ",", "TLS", "xTLS/1.0")]),
        Sweep("offers are not taken, and go nowhere", [
            (f,) + arrives(without("upgrade", "http2-settings", "connection"), get(fields=f)) for f in (
                UPGRADE % "h2c", UPGRADE % "H2C", UPGRADE % "TLS/1.0", UPGRADE % "TLS/1.2, TLS/1.3", UPGRADE % "h2c" + "Upgrade: TLS/1.2\r\n",
                "Upgrade: h2c\r\n", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n")],
            event="completed"),
        Case("Upgrade without Connection", get(fields="Upgrade: foo\r\n"), 501, "upgrade"),
        Sweep("Connection: upgrade alone goes nowhere", [
            (f,) + arrives(without("upgrade", "connection", "sec-websocket-key"), get(fields=f)) for f in (
                "Connection: upgrade\r\n", "Connection: Upgrade, keep-alive\r\n", "Connection: upgrade\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")], event="completed"),
        Sweep("prior knowledge at the proxy's port", [
            (repr(x), forward("PRI * HTTP/2.0\r\n\r\n" + x), 400, "h2c") for x in (
                "SM\r\n\r\n", "SM\r\n\r\n\0\0\0\4\0\0\0\0\0", "", "SM", "XX\r\n\r\n")]),
        Sweep("what is nearly the preface, at the beginning of a tunnel in clear", [
            (repr(x), clear(x), 400, "h2c") for x in (
                "PRI * HTTP/2.0\r\n\r\nsm\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\rX",
                "PRI * HTTP/2.0\r\n\r\nSMSM\r\n\r\n", "PRI * HTTP/2.0\r\nHost: {C}\r\n\r\nSM\r\n\r\n")]),
        Case("the preface in TLS that chose no protocol", http("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400, "h2c")),
    Row("B18", "a switch that nobody asked for",
        Sweep("replies", [(w, answered(b"HTTP/1.1 " + w.encode() + b"\r\n" + f + b"\r\n")) + UPSTREAM
                          for w in ("101 Switching Protocols", "101 x")
                          for f in (b"", b"Upgrade: x\r\nConnection: upgrade\r\n")],
              left="bytes", event="aborted"), twin=get(host=ODD)),
    Row("B19", "interim replies", Sweep("too many", [
        ("%d of %s" % (n, s), interims(n, s)) + UPSTREAM for n in (9, 20, 100)
        for s in ("103 Early Hints", "102 Processing", "199 x")], left="bytes", event="aborted"),
        twin=interims(8)),
    Row("B20", "Connection takes off only what the sender put there",
        Sweep("on a credentialed rule", [
            (c,) + arrives(one_credential, get("/v1/x", "Connection: %s\r\n" % c, host=KEYED))
            for c in ("authorization", "Authorization, close", "host", "content-length", "cookie",
                      "keep-alive, Authorization", "authorization,authorization")], event="completed"),
        Sweep("named fields go", [
            ("X-Hop",) + arrives(without("x-hop", "connection"),
                                 get(fields="Connection: X-Hop\r\nX-Hop: 1\r\n")),
            ("two",) + arrives(without("x-a", "x-b"), get(
                fields="Connection: x-a\r\nConnection: , x-b ,\r\nX-A: 1\r\nX-B: 1\r\n")),
            ("the usual",) + arrives(without("keep-alive", "te", "proxy-connection", "trailer",
                                             "proxy-authorization", "upgrade-insecure"),
                                     get(fields="Keep-Alive: 5\r\nTE: gzip\r\nTrailer: X\r\n"
                                         "Proxy-Connection: x\r\nProxy-Authorization: Basic eDp5\r\n"))],
            event="completed"),
        twin=get("/v1/x", host=KEYED)),
    Row("B21", "the client's own copy of the injected header",
        Sweep("copies", [
            (repr(f), get("/v1/x", f, host=KEYED), 403, "foreign_credential") for f in (
                "Authorization: Bearer mine\r\n", "authorization: x\r\nAUTHORIZATION: y\r\n",
                "aUTHORIZATION: Basic dTpw\r\n", "Authorization:\r\n", "X-Api-Key: x\r\n")]),
        twin=get("/v1/x", host=KEYED)),
    Row("B22", "too many fields, too long a head",
        Case("101 fields", get(fields=FLOOD), 431, "too_many_headers"),
        Case("10,000 fields", get(fields="".join("X-%d: 1\r\n" % i for i in range(10000))), 431,
             "too_many_headers"),
        Case("a value of 1 MB", get(fields="X: %s\r\n" % ("a" * 1000000)), 431, "too_many_headers"),
        Case("a name of 40 KB", get(fields="%s: 1\r\n" % ("a" * 40000)), 431, "too_many_headers"),
        Case("a target of 9,000 bytes", get("/" + "a" * 9000), 414, "target_too_long"),
        twin=get("/" + "a" * 8000, "".join("X-%d: 1\r\n" % i for i in range(98)))),
    Row("B23", "other versions",
        Sweep("numbers", [(v, http("GET / %s\r\nHost: {P}\r\n\r\n" % v), 505, "version")
                          for v in ("HTTP/1.2", "HTTP/1.9", "HTTP/2.0", "HTTP/3.0", "HTTP/9.9")]),
        Sweep("none", [(v, http("GET / %s\r\nHost: {P}\r\n\r\n" % v), 400, "bad_version")
                       for v in ("HTTP/1.10", "HTTP/01.1", "HTTP/1", "http/1.1", "HTTP/1.1x", "HTTP/1,1",
                                 "HTTP/0.9", "HTTP/1.", "HTCPCP/1.0", "HTTP/-1.1", "HTTP/1.1 ",
                                 "XHTTP/1.1", "HTTP /1.1", "HTTP/ 1.1")]),
        Sweep("0.9", [(repr(v), http(v), 400, "bad_request_line")
                      for v in ("GET /\r\n\r\n", "GET /\r\nHost: {P}\r\n\r\n")]),
        twin=http("GET / HTTP/1.0\r\nHost: {P}\r\n\r\n")),
    Row("B24", "no Host, two Hosts",
        *[Case(w, http("GET / HTTP/1.%d\r\n%sX: y\r\n\r\n" % (v, f)), 400, "host") for w, v, f in (
            ("none", 1, ""), ("two", 1, "Host: {P}\r\nHost: {P}\r\n"),
            ("two others", 1, "Host: {P}\r\nHost: {E}\r\n"), ("two in 1.0", 0, "Host: {P}\r\nhost: {P}\r\n"),
            ("a path", 1, "Host: {P}/x\r\n"), ("a list", 1, "Host: {P}, {E}\r\n"),
            ("with a space", 1, "Host: {P} {E}\r\n"))],
        Case("an empty one", http("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 400, "malformed_host"),
        Case("none, with an absolute target", forward("GET http://{C}/ HTTP/1.1\r\n\r\n"), 400, "host"),
        Case("none, with CONNECT to a host of no rule", forward("CONNECT other.acme.dev:443 HTTP/1.1\r\n\r\n"), 403, "no_rule"),
        twin=http("GET / HTTP/1.0\r\n\r\n")),
    Row("B25", "smuggling in replies",
        Sweep("heads", list(smuggling_replies()), left="bytes", event="aborted"),
        Sweep("chunks", [
            (repr(b), reply("Transfer-Encoding: chunked\r\n", body=b), Aborted(code))
            for code, bodies in (("upstream_protocol", ("0x5\r\nhello\r\n0\r\n\r\n", "5\nhello\n0\n\n",
                                                        "5\r\nhelloxy0\r\n\r\n",
                                                        "5\r\nhello!\r\n0\r\n\r\n")),
                                 ("upstream_truncated", ("5\r\nhel", "5\r\nhello\r\n")))
            for b in bodies], event="aborted"),
        Case("bytes after a reply are nobody's", never_pooled, lambda bed, out, records: None if
             out.more[1] == b"ok" else repr(out), event="completed"), twin=get(host=ODD)),
    Row("B27", "Expect", Sweep("others", [(e, get(fields="Expect: %s\r\n" % e), 417, "expect") for e in (
        "x", "200-ok", "100-continue, x", "100-continue;q=1", "")]),
        Case("twice", get(fields="Expect: 100-continue\r\nExpect: 100-continue\r\n"), 417, "expect"),
        Case("100-continue is answered here, once", continued, continued_once, event="completed")),
]
