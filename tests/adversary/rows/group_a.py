"""A. Authority, path, method: what a request is for, said in as many ways as there are."""
import itertools
import re

from . import hello
from .bed import EVIL, OTHER, PLAIN, WILD
from .case import Case, Row, Sweep
from .group_b import arrives
from .send import (client_hello, connect, fill, forward, get, http, names, sni)

AM = (421, "authority_mismatch")
ALERT = hello.UNRECOGNIZED_NAME
LABEL = re.compile(rb"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\Z", re.I)


def canonical(host):
    """Our own reading of what a host name may be (independent of the product's)."""
    labels = (host[:-1] if host.endswith(b".") else host).split(b".")
    last = labels[-1]
    return (all(LABEL.match(x) and not x.endswith(b"-") for x in labels) and not last.isdigit() and
            not re.match(rb"0x[0-9a-f]*\Z", last, re.I))


def same(host):
    return canonical(host) and host.rstrip(b".").lower() == PLAIN.encode()


def origin_form(q, _reply):
    return None if q.target == "/" else "arrived: %s" % q.target


def places(byte):
    name, b = PLAIN.encode(), bytes([byte])
    return {"start": b + name, "middle": name[:6] + b + name[6:], "end": name + b}


# ---- the answer to a host of these bytes, by what carries it ----

def in_connect(host):
    if b"\0" in host or b"\n" in host or b"\r" in host or host.startswith(b" "):
        return 400, "bad_request_line"
    if b" " in host:
        return 400, "bad_version"
    if any(c <= 0x20 or c >= 0x7f or c in b'#"<>\\^`{}|' for c in host):
        return 400, "bad_target"
    return (403, "no_rule") if canonical(host) else (400, "malformed_host")


def in_absolute(host):
    if b"\0" in host or b"\n" in host or b"\r" in host:
        return 400, "bad_request_line"
    if b" " in host:
        return 400, "bad_version"
    cut = re.split(rb"[/?]", host)[0]
    if not canonical(cut):
        return 400, "bad_target"
    return 400, None if same(cut) else "authority_mismatch"


def in_host(host):
    if b"\0" in host or b"\n" in host or b"\r" in host:
        return 400, "bad_header"
    host = host.strip(b" \t")
    if any((c < 0x20 and c != 9) or c == 0x7f for c in host):
        return 400, "bad_header"
    if not re.match(rb"[A-Za-z0-9._:\[\]-]*\Z", host):
        return 400, "host"
    return AM if canonical(host) else (400, "malformed_host")


def in_hello(host):
    return "alert", ALERT, "authority_mismatch" if canonical(host) else "malformed_host"


CARRIERS = {
    "CONNECT": (lambda h: connect(h, host=PLAIN + ":443"), in_connect, b":443"),
    "absolute form": (lambda h: forward(b"GET http://" + h + b"/ HTTP/1.1\r\nHost: " +
                                        PLAIN.encode() + b"\r\n\r\n"), in_absolute, b""),
    "Host": (lambda h: http(b"GET / HTTP/1.1\r\nHost: " + h + b"\r\n\r\n"), in_host, b""),
    "ClientHello": (sni, in_hello, b""),
}


def carried(hosts, carrier):
    """[(what, send, answer…)] for each host that is not the plain one itself."""
    send, answer, tail = CARRIERS[carrier]
    found = []
    for h in hosts:
        h = h.encode("latin-1") if isinstance(h, str) else h
        if same(h) or carrier == "Host" and same(h.strip(b" \t")):
            continue
        want = answer(h)
        if want[1] is None:  # what differs is in the path
            continue
        if carrier == "CONNECT" and want == (403, "no_rule"):
            want = AM  # its Host says the plain one
        found.append((repr(h), send(h + tail)) + want)
    return found


def everywhere(what, hosts, carriers=tuple(CARRIERS)):
    return [Sweep("%s in %s" % (what, c), carried(hosts, c)) for c in carriers]


def bytes_swept():
    return [Sweep("every byte at the %s of the host in %s" % (place, c),
                  carried([places(b)[place] for b in range(256)], c))
            for place in ("start", "middle", "end") for c in CARRIERS]


def spellings():
    """Decimal, octal, hexadecimal and short forms of ten addresses: none is the canonical one."""
    found = []
    for a in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "93.184.216.34", "1.1.1.1",
              "100.100.100.200", "168.63.129.16", "0.0.0.0", "255.255.255.255"):
        p = [int(x) for x in a.split(".")]
        n = p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]
        tail3, tail2 = n & 0xffffff, n & 0xffff
        forms = {str(n), hex(n), hex(n).upper(), "0%o" % n, "%d.%d" % (p[0], tail3),
                 "%d.%d.%d" % (p[0], p[1], tail2), "0x%x.%d" % (p[0], tail3), "%d." % n,
                 "%s.%s" % (hex(p[0]), hex(tail3)), "0%o.0%o" % (p[0], tail3)}
        for kinds in itertools.product(("%d", "0x%x", "0%o", "00%o"), repeat=4):
            form = ".".join(k % x for k, x in zip(kinds, p))
            if form != a and len(forms) < 54:
                forms.add(form)
        forms.add(a + ".")
        forms.add("0" + a)
        forms.discard(a)
        found += sorted(forms)
    return found


CONFUSABLE = ("ｄeps.example.com", "deps。example.com", "deps．example.com", "deps｡example.com",
              "dеps.example.com", "deps.exаmple.com", "deps.example.cοm", "dëps.example.com",
              "deps\u200b.example.com", "deps.example.com\u200d", "deps\u00ad.example.com",
              "ⅾeps.example.com", "deps.example．com", "ﬀ.example.com", "ß.example.com",
              "deps%E3%80%82example.com", "𝐝eps.example.com", "deps․example.com")
PERCENT = ("deps%2eexample.com", "deps%2Eexample.com", "%64eps.example.com", "deps.example.com%00",
           "deps.example.com%00.evil.org", "evil.example.org%2f.deps.example.com",
           "deps.example.com%2eevil.org", "deps.example%252ecom", "deps.example.com%20",
           "deps.example.com%0d%0a", "%5b::1%5d")
DOTS = ("deps.example.com..", "deps..example.com", ".deps.example.com", "..", ".", "deps.example.com...",
        "deps.example..com", "deps.example.com.evil..org")
ZONES = ("[fe80::1%25eth0]", "[fe80::1%eth0]", "[fe80::1%251]", "[::1%lo]", "[::1", "::1]", "[]",
         "[::1]]", "[[::1]]", "[v1.x]", "[1.2.3.4]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
         "[::1]x", "[:::1]", "[12345::1]", "[deps.example.com]")


def path(p, host=PLAIN, **kw):
    return get(p, host=host, **kw)


def dots():
    """Dot segments in every writing, at depth one to four, with and without a path rule."""
    writings = ("..", "%2e%2e", "%2E.", ".%2e", "%2E%2E", "..;x", "%2e%2e;a=b", ".", "%2e",
                "%252e%252e", "%25%32%65%2e", "%c0%ae%c0%ae", "..%3bx", ".%00.", "%2e%2e%2f")
    found = []
    for host, w in itertools.product((PLAIN, "paths.example.com"), writings):
        for depth in range(1, 5):
            p = "/pub/" + "a/" * (depth - 1) + w + "/secret/x"
            found.append((host + p, path(p, host), 400, "path_ambiguous"))
    return found


def targets():
    """Every byte that a request target may not have, in the path and in the query (one above 0x7f alone
    is no UTF-8)."""
    found = []
    for b in range(256):
        for p in (b"/x" + bytes([b]) + b"y", b"/x?a" + bytes([b]) + b"y"):
            send = http(b"GET " + p + b" HTTP/1.1\r\nHost: {P}\r\n\r\n")
            if b in (0, 10, 13):
                found.append((repr(p), send, 400, "bad_request_line"))
            elif b == 0x20:
                found.append((repr(p), send, 400, "bad_version"))
            elif b < 0x20 or b >= 0x7f or b == 0x23 or (b == 0x5c and b"?" not in p):
                found.append((repr(p), send, 400, "bad_target"))
            elif b == 0x25 and b"?" not in p:
                found.append((repr(p), send, 400, "path_ambiguous"))
    return found


FORWARDING = ("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port",
              "X-Forwarded-Server", "X-Forwarded-Prefix", "Forwarded", "X-Original-URL",
              "X-Original-Host", "X-Rewrite-URL", "X-Real-IP", "Via", "X-Host",
              "X-HTTP-Host-Override", "X-Client-IP", "True-Client-IP", "CF-Connecting-IP",
              "Max-Forwards", "Proxy-Connection")
# by family, and as CGI would read them
FAMILIES = ("X-Forwarded-Uri", "X-Forwarded-Path", "X-Forwarded-Method", "X-Forwarded-User",
            "X-Forwarded-Groups", "X-Forwarded-Client-Cert", "X-Original-Uri", "X-Original-Method",
            "X-Override-URL", "X-Envoy-Original-Path", "X-Envoy-Internal", "X-Remote-User", "Remote-User",
            "X-Remote-Groups", "X-Real-Port", "X-Client-DN", "X-Cluster-Client-Ip", "X-Auth-Request-User",
            "X-SSL-Client-Verify", "Proxy", "X_Forwarded_Uri", "X_Original_Uri", "X_Remote_User",
            "X.Remote.User", "x_envoy_original_path", "X_Override_URL")
OWN = ("X-Client-Version", "X-Client-Name", "X-Client-Info", "X-Stainless-Lang", "X-Stainless-Retry-Count",
       "X-Goog-Api-Client", "Anthropic-Beta", "OpenAI-Project", "X-Hostname", "X-Npm-Session")
OVERRIDES = ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override")


def dropped(fields, host=PLAIN, counted=False):
    """The request is served and none of the fields arrives."""
    text = "".join("%s: %s\r\n" % (n, EVIL) for n in fields)
    send = get("/", text, host)

    def check(bed, out, records):
        o = bed.ro if host.startswith("ro") else bed.plain
        there = {n.lower() for n, _ in o.requests[-1].headers} if o.requests else set()
        left = there & {n.lower() for n in fields}
        if out.status != 200 or left or [r["kind"] for r in records] != ["admitted", "completed"]:
            return "%r, arrived: %s, records %s" % (out, left, [r["kind"] for r in records])
        return None
    return Case("each is dropped", send, check, event="completed")


def kept(fields):
    text = "".join("%s: v\r\n" % n for n in fields)

    def check(bed, out, _records):
        there = {n.lower() for n, _ in bed.plain.requests[-1].headers} if bed.plain.requests else set()
        lost = {n.lower() for n in fields} - there
        return "%r, lost: %s" % (out, lost) if out.status != 200 or lost else None
    return Case("a client's own fields arrive", get("/", text, PLAIN), check, event="completed")


def forwarded(target):
    """The target arrives byte for byte."""
    def check(bed, out, _records):
        got = bed.plain.requests[-1].target
        return None if out.status == 200 and got == target else "%r, arrived %r" % (out, got)
    return (target, get(target), check)


MISMATCH = [(h, get(said=h)) + AM for h in (OTHER, EVIL, PLAIN + ":8443", PLAIN + ":80", WILD)]

ROWS = [
    Row("A1", "SNI is not the Host", Case("421", get(said=OTHER), *AM),
        Case("a name of no rule", get(said=EVIL), *AM),
        Case("on a credentialed rule", get("/v1/x", host="keyed.example.com", said=PLAIN), *AM),
        Case("and no other way round", get("/v1/x", said="keyed.example.com"), *AM)),
    Row("A2", "the CONNECT target is not the SNI",
        Case("an allowed one", sni(OTHER.encode()), "alert", ALERT, "authority_mismatch",
             event="denied"),
        Case("one of no rule", sni(EVIL.encode()), "alert", ALERT, "authority_mismatch"),
        Case("with Host as the SNI", names(PLAIN, OTHER, OTHER), "alert", ALERT,
             "authority_mismatch"),
        Case("Host of CONNECT is another name", connect(PLAIN + ":443", host=EVIL + ":443"), *AM),
        twin=sni(PLAIN.encode())),
    Row("A3", "absolute form is for the explicit port alone, and Host must equal it",
        Case("inside TLS, another host", http("GET http://{E}/ HTTP/1.1\r\nHost: {P}\r\n\r\n"), 400,
             "bad_target"),
        Case("inside TLS, the same host, another scheme", http("GET http://{P}/ HTTP/1.1\r\nHost: {P}\r\n\r\n"), 400,
             "bad_target"),
        Case("inside TLS, another port", http("GET https://{P}:444/ HTTP/1.1\r\nHost: {P}\r\n\r\n"), 400,
             "bad_target"),
        Case("inside TLS, https, another host", http("GET https://{E}/ HTTP/1.1\r\nHost: {P}\r\n\r\n"), 400,
             "bad_target"),
        Case("inside TLS, what the connection leads to, Host is another",
             http("GET https://{P}/ HTTP/1.1\r\nHost: {E}\r\n\r\n"), 421, "authority_mismatch"),
        Sweep("inside TLS, what the connection leads to arrives in origin form", [
            (w,) + arrives(origin_form, http("GET %s HTTP/1.1\r\nHost: {P}\r\n\r\n" % w)) for w in (
                "https://{P}/", "https://{P}", "HTTPS://{P}:443/", "https://{P}./")], event="completed"),
        Case("explicit, Host is another", forward("GET http://{C}/ HTTP/1.1\r\nHost: {E}\r\n\r\n"),
             400, "authority_mismatch"),
        Case("explicit, https in clear", forward("GET https://{P}/ HTTP/1.1\r\nHost: {P}\r\n\r\n"),
             400, "bad_target"),
        Case("explicit, no path, Host is another", forward("GET http://{C}?/ HTTP/1.1\r\nHost: {E}\r\n\r\n"),
             400, "authority_mismatch"),
        Case("explicit, no path, a host of no rule", forward("GET http://other.acme.dev HTTP/1.1\r\nHost: other.acme.dev\r\n\r\n"),
             403, "no_rule"),
        Case("explicit, origin form", forward("GET / HTTP/1.1\r\nHost: {C}\r\n\r\n"), 400,
             "bad_target"),
        Sweep("schemes", [(s, forward("GET %s{C}/ HTTP/1.1\r\nHost: {C}\r\n\r\n" % s), 400,
                           "bad_target") for s in ("ftp://", "file://", "//", "http:", "http:/",
                                                   "ws://", "http:///", "gopher://", "")]),
        twin=forward("GET http://{C}/ HTTP/1.1\r\nHost: {C}\r\n\r\n")),
    Row("A4", "every way in meets the same decision",
        Case("a denied path in CONNECT", path("/pub/secret/x", "paths.example.com"), 403,
             "denied_by_rule"),
        Case("another path", path("/else", "paths.example.com"), 403, "no_rule"),
        Case("a host of no rule, forward", forward("GET http://{E}/ HTTP/1.1\r\nHost: {E}\r\n\r\n"),
             403, "no_rule"),
        Case("an https host, forward", forward("GET http://{P}/ HTTP/1.1\r\nHost: {P}\r\n\r\n"),
             403, "no_rule"),
        Case("a host of no rule, CONNECT", connect("{E}:443"), 403, "no_rule"),
        twin=path("/pub/x", "paths.example.com")),
    Row("A6", "no byte in a host is read in two ways", *bytes_swept(),
        *everywhere("a NUL before an allowed name", [b"evil.example.org\0.deps.example.com",
                                                     b"deps.example.com\0.evil.example.org"])),
    Row("A7", "a host is never percent-decoded", *everywhere("a percent escape", PERCENT)),
    Row("A8", "one trailing dot is folded, nothing more", *everywhere("a wrong dot", DOTS),
        twin=get(said=PLAIN + ".")),
    Row("A9", "ASCII case is folded", Case("another name in capitals", get(said="OTHER.Example.COM"),
                                           *AM), twin=get(said="DEPS.Example.COM")),
    Row("A10", "no byte above 0x7f is a letter",
        *everywhere("a confusable", [x.encode("utf-8") for x in CONFUSABLE]),
        Case("punycode is plain text", get(said="xn--deps-example.com"), *AM)),
    Row("A11", "no user information",
        *everywhere("user information", ("u@deps.example.com", "deps.example.com@evil.example.org",
                                         "u:p@deps.example.com", "@deps.example.com",
                                         "deps.example.com%40evil.example.org")),
        Case("in an absolute form", forward("GET http://{C}@{E}/ HTTP/1.1\r\nHost: {C}\r\n\r\n"),
             400, "bad_target")),
    Row("A12", "a leading dot is whole labels, never the apex",
        *[Case(h, connect(h + ":443"), 403, "no_rule")
          for h in ("wild.example.net", "awild.example.net", "a.wild.example.net.evil.org",
                    "www." + PLAIN, "xdeps.example.com", PLAIN + ".evil.org", "example.com")],
        Case("inside TLS", get(host=WILD, said="wild.example.net"), *AM), twin=get(host=WILD)),
    Row("A14", "IPv6 zone ids and brackets", *everywhere("brackets", ZONES)),
    Row("A15", "an IP spelled decimal, octal, hexadecimal or short",
        *everywhere("a spelling", spellings()),
        Case("the canonical one needs a rule", connect("127.0.0.1:443"), 403, "no_rule")),
    Row("A16", "host and port are one",
        *[Case("CONNECT %r" % p, connect(PLAIN + p, host=PLAIN + ":443"), 400, "malformed_host")
          for p in (":0", ":65536", ":+443", ":", "", ":0443", ":443 ".strip() + "x", ":-1",
                    ":99999999999", ":44３".encode("utf-8").decode("latin-1")[:3] + "x", "::443")],
        *[Case("CONNECT to another port, %s" % p, connect(PLAIN + p), 403, "no_rule")
          for p in (":8443", ":80", ":22", ":9999")],
        *[Case("Host with port %s" % p, get(said=PLAIN + p), *AM) for p in (":80", ":8443", ":1")],
        *[Case("Host with port %r" % p, get(said=PLAIN + p), 400, "malformed_host")
          for p in (":0", ":65536", ":", ":0443", ":x")],
        twin=get(said=PLAIN + ":443")),
    Row("A17", "no credential in clear",
        Case("a credentialed host over http",
             forward("GET http://{K}/v1/x HTTP/1.1\r\nHost: {K}\r\n\r\n"), 403, "no_rule"),
        Case("and in a tunnel without TLS",
             connect("{K}:80"), 403, "no_rule"), twin=get("/v1/x", host="keyed.example.com")),
    Row("A18", "dot segments", Sweep("every writing and depth", dots()),
        twin=path("/pub/a..b/.c/d.", "paths.example.com")),
    Row("A19", "encoded dots",
        Sweep("two levels of encoding", [
            (p, path(p, h), 400, "path_ambiguous") for h in (PLAIN, "paths.example.com")
            for p in ("/pub/%2e%2e/x", "/pub/%252e%252e/x", "/pub/%25252e%25252e/x", "/pub/%2e/x",
                      "/pub/..%2fx", "/pub/..%5cx", "/pub/%2e%2e%2fx", "/pub/.%252e/x",
                      "/pub/%c0%ae%c0%ae/x", "/pub/%e0%80%ae./x", "/pub/x/%2e%2E", "/%2e")]),
        twin=path("/pub/a%2eb", "paths.example.com")),
    Row("A20", "empty segments",
        Sweep("at the beginning", [(p, path(p, h), 400, "path_ambiguous")
                                   for h in (PLAIN, "paths.example.com")
                                   for p in ("//", "///", "//pub/x", "//evil.example.org/pub/x", "/pub//../secret", "/pub//./x")]),
        Sweep("a deny holds without them", [
            (p, path(p, "paths.example.com"), 403, "denied_by_rule")
            for p in ("/pub//secret/x", "/pub///secret//x", "/pub/secret//x", "/pub/%2f/secret/x", "/pub//SECRET;a/x", "/pub//exact")],
            keeps=True),
        Sweep("no literal path and no star has one", [
            (p, path(p, "paths.example.com"), 403, "no_rule") for p in ("/x//y", "/a//pub/x")], keeps=True),
        Sweep("they are forwarded as they came", [
            forwarded(p) for p in ("/web/2020/https://example.com//a//", "/a//b", "/x//")], event="completed")),
    Row("A21", "encoded slash and backslash",
        Sweep("refused bytes", [(p, path(p), 400, "path_ambiguous")
                                for p in ("/a%5cb", "/a%5Cb", "/a%00", "/a%255cb", "/a%2500", "/a%zz",
                                          "/a%2", "/a%")]),
        Case("a backslash", path("/a\\b"), 400, "bad_target"),
        Sweep("a deny holds in both readings of %2F", [
            (p, path(p, "paths.example.com"), 403, "denied_by_rule")
            for p in ("/pub/secret%2fx", "/pub/secret%2Fx", "/pub%2fsecret/x", "/pub/SECRET/x",
                      "/pub/s%65cret/x", "/pub/secret%2f%2fx", "/pub/ex%61ct")], keeps=True),
        Sweep("and it is forwarded as it came", [forwarded("/a%2Fb"), forwarded("/a%2fb%2F")],
              event="completed")),
    Row("A22", "path parameters",
        Sweep("before a dot segment", [(p, path(p), 400, "path_ambiguous")
                                       for p in ("/a;x/../b", "/..;x/b", "/a/..;/b", "/.;a=b/",
                                                 "/%2e%2e;x/", "/..%3bx/b")]),
        Sweep("a deny holds in both readings of ;", [
            (p, path(p, "paths.example.com"), 403, "denied_by_rule")
            for p in ("/pub/secret;x/y", "/pub;a=b/secret/y", "/pub;/secret;/y", "/pub/exact;",
                      "/pub/exact;v=1", "/pub/secret%3bx/y", "/pub%3b/secret/y", "/pub/;a/secret/y",
                      "/pub/secret;a%2fb")], keeps=True),
        Sweep("others are bytes and go on as they came",
              [forwarded("/a;b=c/d;e"), forwarded("/a;b")], event="completed"),
        twin=path("/pub/a;b", "paths.example.com")),
    Row("A23", "fragments, controls, high bytes", Sweep("every byte", targets()),
        twin=path("/x?a=%23&b=~!$'()*,")),
    Row("A24", "the method is a token on a list",
        *[Case(m, http(m + " / HTTP/1.1\r\nHost: {P}\r\n\r\n"), 405, "method")
          for m in ("TRACE", "TRACK", "get", "Get", "FOO", "DEBUG", "GETS", "BIND", "M-SEARCH", "X-GET", "SOURCE")],
        *[Case(repr(m), http(m + " / HTTP/1.1\r\nHost: {P}\r\n\r\n"), 400, "bad_request_line")
          for m in ("G\x01T", "GE,T", "G@T", "", "GET\t", "\"GET\"", "G\xc9T", "GET:")],
        Case("HAProxy's prefix", http("GET /admin? HTTP/1.1 /static HTTP/1.1\r\nHost: {P}\r\n\r\n"),
             400, "bad_version"),
        *[Case("%s on a read-only rule" % m, path("/", "ro.example.com", method=m), 403, "method")
          for m in ("POST", "PUT", "PATCH", "DELETE", "PROPFIND")],
        twin=path("/", "ro.example.com")),
    Row("A25", "no other method by a header or a parameter",
        dropped(OVERRIDES, "ro.example.com"),
        Sweep("a _method parameter on a method-scoped rule", [
            (q, path("/x?" + q, "ro.example.com"), 403, "method_override")
            for q in ("_method=DELETE", "a=b&_method=PUT", "_method", "a;_method=DELETE", "_METHOD=x",
                      "%5fmethod=DELETE", "_m%65thod=POST", "a=1&%5F%6D%65%74%68%6F%64=PUT",
                      "_method[]=DELETE", "_method%5b%5d=PUT")], keeps=True),
        twin=path("/x?method=DELETE&x_method=1&a=_method", "ro.example.com")),
    Row("A26", "forwarding headers", dropped(FORWARDING), dropped(FAMILIES), kept(OWN)),
    Row("A27", "the query is forwarded byte for byte",
        Sweep("odd queries", [forwarded("/q?" + q) for q in (
            "a=1&a=2", "a=%31&a=+2", "%61=1", "a[]=1&a[]=2", "?a=1??", "", "a=b;c=d", "a=%00&b=%zz",
            "x=../../etc", "x=//", "x=%2e%2e%2f", "a&b&&c=")], event="completed")),
]
