"""C. Secrets: where they come back, go out, or are asked for by others. Clients sit in two sandboxes."""
import base64
import itertools
import json
import re

from harness import h2

from . import reflecting
from .bed import EVIL, KEYED, ODD, PATHS, PLAIN, RO
from .bed_c import (BODY, BYTES, CACHED, GOES, NARROW, PATH, QUERY, SHOW, TARGETS, WORD)
from .case import Case, Many, Row, Sweep, ended
from .send import Out, answered, connect, get, http, read

FOREIGN, BLOCKED, CROSS = (403, "foreign_credential"), (403, "secret_blocked"), (403, "cross_sandbox")


def get2(path="/", fields=(), host=PLAIN, method="GET", authority=None, body=b""):
    """get() over HTTP/2. fields: as text of HTTP/1."""
    if isinstance(fields, str):
        fields = [tuple(x.split(": ", 1)) for x in fields.split("\r\n") if x]

    def send(bed):
        with h2.H2(bed.gate, host) as c:
            some = c.fields(path, method, [(n.lower(), v) for n, v in fields], authority)
            stream = c.open(some, not body)
            for i in range(0, len(body), 16384):
                c.frame(h2.DATA, h2.END_STREAM if i + 16384 >= len(body) else 0, stream, body[i:i + 16384])
            a = c.answer(stream)
        mark = (a.get("durward-denied") or " ").split(" ")
        return Out(a.status, a.code, mark[1] if a.code else None, reply=a)
    return send


BOTH = (("h1", get), ("h2", get2))


def with_own(make, name="github"):
    """A sender made of a placeholder that only the running bed knows. name: github, openai, other."""
    def send(bed):
        own = {"github": bed.github, "openai": bed.openai, "other": bed.other.own["GITHUB_TOKEN"]}[name]
        return make(own)(bed)
    return send


def basic(user, password):
    return "Basic " + base64.b64encode(("%s:%s" % (user, password)).encode()).decode()


# ---- C2 ----

def passes(check, sender):
    def judge(bed, out, records):
        if out.status != 200:
            return repr(out)
        why = check(bed, out)
        kinds = [r["kind"] for r in records]
        return why or (None if kinds == ["admitted", "completed"] else "records %s" % kinds)
    return sender, judge


def no_max_forwards(bed, _out):
    q = bed.show.requests[-1]
    return "arrived: Max-Forwards" if q.get("max-forwards") is not None else None


# ---- C3: every refusal that a request can bring about, each with a word in it that must not come back ----

def errors():
    w, f = WORD, "X-Said: %s\r\nCookie: c=%s\r\n" % (WORD, WORD)
    line = "GET /%s HTTP/1.1\r\nHost: {P}\r\n" % w
    for what, send, status, code in (
            ("first line", http("\r\n" + line + f + "\r\n"), 400, "bad_request_line"),
            ("a fragment", get("/x#" + w, f), 400, "bad_target"),
            ("user information", http("GET https://%s@{P}/ HTTP/1.1\r\nHost: {P}\r\n\r\n" % w), 400, "bad_target"),
            ("the version", http("GET / HTTP/%s\r\nHost: {P}\r\n\r\n" % w), 400, "bad_version"),
            ("another version", http("GET /%s HTTP/1.9\r\nHost: {P}\r\n\r\n" % w), 505, "version"),
            ("a name with a space", get("/" + w, w + " x: 1\r\n"), 400, "bad_header"),
            ("a folded field", get("/" + w, "X: 1\r\n " + w + "\r\n"), 400, "bad_header"),
            ("two hosts", http(line + "Host: %s.example.org\r\n\r\n" % w), 400, "host"),
            ("both framings", get("/" + w, f + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400,
             "framing"),
            ("a coding", get("/" + w, "Transfer-Encoding: %s\r\n" % w), 501, "transfer_coding"),
            ("no host name", connect(w + "..x:443"), 400, "malformed_host"),
            ("bytes after CONNECT", connect(PLAIN + ":443", extra="Content-Length: 4\r\nX: %s\r\n" % w), 400,
             "early_data"),
            ("a host of no rule", connect(w.lower() + ".example.org:443", host=None), 403, "no_rule"),
            ("another host", get("/" + w, f, said=w.lower() + ".example.org"), 421, "authority_mismatch"),
            ("dots", get("/a/../" + w, f), 400, "path_ambiguous"),
            ("a path of no rule", get("/" + w, f, host=KEYED), 403, "no_rule"),
            ("a denied path", get("/pub/secret/" + w, f, host=PATHS), 403, "denied_by_rule"),
            ("a method", get("/" + w, f, host=RO, method="DELETE"), 403, "method"),
            ("TRACE", get("/" + w, f, method="TRACE"), 405, "method"),
            ("CONNECT inside", http("CONNECT %s:443 HTTP/1.1\r\nHost: {P}\r\n\r\n" % w.lower()), 405,
             "connect_inside"),
            ("_method", get("/x?_method=" + w, f, host=RO), 403, "method_override"),
            ("Expect", get("/" + w, "Expect: %s\r\n" % w), 417, "expect"),
            ("Upgrade", get("/" + w, "Connection: upgrade\r\nUpgrade: %s\r\n" % w), 501, "upgrade"),
            ("a WebSocket", get("/" + w, f + "Connection: upgrade\r\nUpgrade: websocket\r\n"
                                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"),
             403, "websocket"),
            ("a long target", get("/" + w * 300, f), 414, "target_too_long"),
            ("many fields", get("/", ("X-%s: %s\r\n" % (w, w)) * 101), 431, "too_many_headers"),
            ("a foreign credential", get("/v1/x", "Authorization: Bearer %s\r\n" % w, host=KEYED)) + FOREIGN,
            ("a foreign parameter", get("/v1/x?access_token=" + w, f, host=KEYED)) + FOREIGN,
            ("an unreadable secret", get("/" + w, f, host="b1.worst.example.com"), 503, "secret_unavailable"),
            ("no placeholder", get("/" + w, f, host=PATH), 403, "placeholder_count")):
        yield what, send, status, code
    for what, own, host in (("one's own elsewhere", "github", PLAIN), ("another sandbox's", "other", SHOW)):
        yield what, with_own(lambda p, h=host: get("/%s?x=%s" % (w, p), f, host=h), own), 403, \
            "cross_sandbox" if own == "other" else "secret_blocked"
    both = "X-Said: %s" % w
    for what, send, status, code in (
            ("h2: a path of no rule", get2("/" + w, both, KEYED), 403, "no_rule"),
            ("h2: a denied path", get2("/pub/secret/" + w, both, PATHS), 403, "denied_by_rule"),
            ("h2: dots", get2("/../" + w, both), 400, "path_ambiguous"),
            ("h2: a method", get2("/" + w, both, RO, "DELETE"), 403, "method"),
            ("h2: TRACE", get2("/" + w, both, method="TRACE"), 405, "method"),
            ("h2: another host", get2("/" + w, both, authority=w.lower() + ".example.org"), 421,
             "authority_mismatch"),
            ("h2: Expect", get2("/" + w, "expect: " + w), 417, "expect"),
            ("h2: a foreign credential", get2("/v1/x", "X-Api-Key: " + w, KEYED)) + FOREIGN,
            ("h2: an unreadable secret", get2("/" + w, both, "b2.worst.example.com"), 503, "secret_unavailable")):
        yield what, send, status, code


ALLOWED = {"content-type", "content-length", "durward-denied", "x-proxy-error", "connection", "allow", "date", "cache-control",
           "retry-after", ":status"}


SAID = {}


def fixed(r):
    """The same text for the same code, whatever was asked, but for the id."""
    at = re.search(rb"\n(denied|refused|failed) ([a-z_0-9]+) [0-9-]+\n\Z", r.body)
    key = at and (at.group(1), at.group(2), r.status)
    return bool(at) and r.body.startswith(b"Durward ") and SAID.setdefault(key, r.body[:at.start()]) == r.body[:at.start()]


def bare(bed):
    """Each answer is the sentence of its code, the code and the id, nothing else."""
    bad, n = [], 0
    for what, send, status, code in errors():
        out = send(bed)
        r = out.reply
        n += 1
        if (out.status, out.code) != (status, code):
            bad.append((what, "wanted %s, got %r" % ((status, code), out)))
            continue
        names = {x for x, _ in r.headers}
        text = r.body + b"".join(b"%s: %s\n" % (x.encode("latin-1"), v.encode("latin-1")) for x, v in r.headers)
        if not fixed(r) or names - ALLOWED or WORD.encode() in text or \
                WORD.lower().encode() in text.lower():
            bad.append((what, repr(text)))
    for what, data in (("502 upstream_protocol", b"HTTP/9.9 200 %s\r\n\r\n"), ("502 too", b"%s"),
                       ("502 framing", b"HTTP/1.1 200 OK\r\nX: %s\r\nContent-Length: x\r\n\r\n")):
        out = answered(data % WORD.encode())(bed)
        n += 1
        if out.status != 502 or WORD.encode() in out.reply.body + out.reply.raw:
            bad.append((what, repr(out)))
    return n, bad


# ---- C4 ----

def chain(bed):
    """Each reply goes to the client as it is; what the client then does is decided by itself."""
    bad, n = [], 0
    for status, host in itertools.product((301, 302, 303, 307, 308), TARGETS + (EVIL,)):
        before = bed.requests()
        for how in (get, get2):
            out = how("/%d/%s/v1/next" % (status, host), host=GOES)(bed)
            r = out.reply
            got = dict(r.headers).get("location")
            n += 1
            if out.status != status or got != "https://%s/v1/next" % host:
                bad.append(("%d to %s" % (status, host), "%r %s" % (out, got)))
        if bed.requests() != before + 2:
            bad.append(("%d to %s" % (status, host), "%d requests" % (bed.requests() - before)))
    for host, code in ((PLAIN, "secret_blocked"), (KEYED, "secret_blocked"), (GOES, "secret_blocked")):
        for fields in ("Authorization: Bearer {}", "Authorization: {}", "Private-Token: {}", "X-Next: {}"):
            out = with_own(lambda p: get("/v1/next", fields.format(p) + "\r\n", host=host))(bed)
            n += 1
            if (out.status, out.code) != (403, code):
                bad.append(("followed to %s with %s" % (host, fields), repr(out)))
    hops = [(GOES, "odd"), (PLAIN, None), (KEYED, "openai"), (SHOW, "odd")]
    for host, secret in hops:
        out = get("/307/%s/v1/x" % PLAIN if host == GOES else "/v1/x", host=host)(bed)
        q = {GOES: bed.goes, PLAIN: bed.plain, KEYED: bed.keyed, SHOW: bed.show}[host].requests[-1]
        want = {"odd": bed.value, "openai": bed.s.openai_secret, None: None}[secret]
        n += 1
        if out.status not in (200, 307) or q.get("authorization") != (want and "Bearer " + want.decode()):
            bad.append(("hop to " + host, "%r %s" % (out, secret)))
    return n, bad


# ---- C5 ----

CARRIERS = [(n, v) for n, v in [
    ("Authorization", "Bearer mine"), ("Authorization", "token mine"), ("Authorization", basic("u", "p")),
    ("Authorization", "Digest username=u"), ("Authorization", "Negotiate x"), ("Authorization", "mine"),
    ("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/x, SignedHeaders=host, Signature=00"),
    ("Authorization", "SharedKey a:b"), ("Authorization", "GoogleLogin auth=x")] + [(n, "mine") for n in (
        "X-Api-Key", "Api-Key", "ApiKey", "X-ApiKey", "X-Goog-Api-Key", "Private-Token", "Job-Token",
        "Deploy-Token", "X-Auth-Token", "X-Auth-Key", "X-Access-Token", "X-Amz-Security-Token", "X-GitHub-Token",
        "X-Gitlab-Token", "X-Vault-Token", "X-Consul-Token", "X-Token", "Token", "X-Session-Token",
        "X-Client-Secret", "X-Authorization", "Authentication", "DPoP", "Signature", "Signature-Input",
        "Ocp-Apim-Subscription-Key", "X-Functions-Key", "DD-API-KEY", "DD-APPLICATION-KEY", "Circle-Token",
        "X-Shopify-Access-Token", "X-Figma-Token", "CF-Access-Client-Secret", "X-RapidAPI-Key", "X-Mashape-Key",
        "X-TrackerToken", "X-Honeycomb-Team", "X-Appwrite-Key", "X-Master-Key", "X-MBX-APIKEY",
        "X-Algolia-API-Key", "X-Postmark-Server-Token", "X-Plex-Token", "OpenAI-Api-Key", "Anthropic-Api-Key",
        "X-Parse-Session-Token", "X-Auth-Email", "X-Client-Cert", "X-SSL-Client-Cert", "X-Api-Secret",
        "X-Secret", "X-Password", "X-Amz-Credential", "X-Key", "X-License-Key", "JWT", "X-JWT",
        "CF-Access-Jwt-Assertion", "X-Appwrite-JWT", "X-Metabase-Session", "X-Ms-Authorization-Auxiliary")] + [
            # a session's id says nothing by its name: what a token looks like is one
            ("X-Session-Id", "ghp_" + 36 * "a"), ("Mcp-Session-Id", "sk-" + 40 * "b"),
            ("X-Session-Id", "Bearer mine"), ("X_Session_Id", "AKIA" + 16 * "C"),
            ("Vendor-Session", "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.AAAAAAAAAAAA")]]
SESSIONS = [("Mcp-Session-Id", "1868a90c-ecb5-4d2f-9d1c-6f1d1d6f0c11"), ("X-Session-Id", 64 * "a"),
            ("X-Claude-Code-Session-Id", "session_01AbCdEfGhIjKlMnOpQrStUv"), ("X-Request-Id", "req_011CSHoEeqs5"),
            ("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")]
PARAMETERS = ["access_token=m", "api_key=m", "apikey=m", "key=m", "token=m", "sig=m", "signature=m",
              "X-Amz-Signature=m", "X-Amz-Credential=m", "x-amz-security-token=m", "X-Goog-Signature=m",
              "X-Goog-Credential=m", "private_token=m", "client_secret=m", "AWSAccessKeyId=m", "auth=m",
              "%61ccess_token=m", "acce%73s%5ftoken=m", "ACCESS_TOKEN=m", "a=1&access_token=m", "a=1;key=m",
              "access_token", "token=", "id_token=m", "jwt=m", "password=m", "hapikey=m", "oauth_token=m",
              "subscription-key=m", "refresh_token=m", "X-Goog-Security-Token=m", "authorization=m",
              "secret=m", "client_assertion=m", "session_token=m", "code_verifier=m&access_token=m"]


def foreign(how):
    sep = "\r\n"
    cases = [("%s: %s" % c, how("/v1/x", "%s: %s%s" % (c[0], c[1], sep), host=KEYED)) + FOREIGN for c in CARRIERS]
    cases += [(p, how("/v1/x?" + p, host=KEYED)) + FOREIGN for p in PARAMETERS]
    return cases + [("a sub-protocol", how("/v1/x", "Sec-WebSocket-Protocol: bearer, mine\r\n", host=KEYED)) +
                    FOREIGN]


def arrives(name, value):
    return lambda bed, _out: None if bed.keyed.requests[-1].get(name.lower()) == value else "did not arrive"


def no_cookie(bed, _out):
    return "arrived" if bed.keyed.requests[-1].get("cookie") is not None else None


# ---- C6 ----

def scoped(how):
    for method, path, code in (
            ("POST", "/gists", "no_rule"), ("POST", "/repos/evil/x", "no_rule"), ("GET", "/user", "no_rule"),
            ("PUT", "/repos/acme/x/contents/f", "method"), ("PATCH", "/repos/acme/x", "method"),
            ("DELETE", "/repos/acme/x", "method"), ("POST", "/repos/acme/x/issues/1", "method"),
            ("POST", "/repos/acme/x/forks", "method"), ("GET", "/repos/acme/private/x", "denied_by_rule"),
            ("GET", "/repos/acme/PRIVATE/x", "denied_by_rule"), ("GET", "/repos/acme%2Fprivate/x", "denied_by_rule"),
            ("POST", "/REPOS/acme/x/issues", "no_rule"), ("GET", "/repos/acmeevil/x", "no_rule"),
            ("PROPFIND", "/repos/acme/x", "method"), ("SEARCH", "/repos/acme/x", "method")):
        yield "%s %s" % (method, path), how(path, host=NARROW, method=method), 403, code


# ---- C7, C8, C9: a placeholder where it does not belong ----

PLACES = [("the query", "/v1/x?a={}", ""), ("a parameter's name", "/v1/x?{}=1", ""), ("the path", "/v1/{}", ""),
          ("the middle of a segment", "/v1/a{}b", ""), ("Authorization", "/v1/x", "Authorization: Bearer {}"),
          ("Authorization, token", "/v1/x", "Authorization: token {}"), ("Basic, password", "/v1/x", "basic:u:{}"),
          ("Basic, user", "/v1/x", "basic:{}:x"), ("X-Api-Key", "/v1/x", "X-Api-Key: {}"),
          ("User-Agent", "/v1/x", "User-Agent: a/{}"), ("Referer", "/v1/x", "Referer: https://x/?{}"),
          ("any field", "/v1/x", "X-A: b={}; c"), ("twice", "/v1/x?{}", "X-A: {}")]


def placed(how, host, own, answer, some=PLACES):
    for what, path, fields in some:
        def make(p, path=path, fields=fields):
            f = fields.replace("{}", p)
            if fields.startswith("basic:"):
                f = "Authorization: " + basic(*f.split(":")[1:])
            return how(path.replace("{}", p), f + "\r\n" if f else "", host=host)
        yield ("%s at %s" % (what, host), with_own(make, own)) + answer


def to_nowhere():
    for what, make in (("CONNECT", lambda p: connect("%s.%s:443" % (p.lower().replace("_", "-"), EVIL))),
                       ("the query", lambda p: http("GET /?x=%s HTTP/1.1\r\nHost: {E}\r\n\r\n" % p))):
        if what == "CONNECT":
            yield what, with_own(make), 403, "no_rule"
        else:
            yield what, with_own(make), 421, "authority_mismatch"


def right_places(name, host):
    return [("%s at %s, %s" % (name, host, f),) + passes(lambda b, o: None, with_own(
        lambda p, f=f: get("/v1/x" if host != "api.github.com" else "/user", f.format(p) + "\r\n", host=host), name))
        for f in ("Authorization: Bearer {}", "Authorization: token {}", "Authorization: {}")]


# ---- C12 ----

def hidden(bed):
    """Secrets in URLs and bodies: right at the origin, gone in the reply, not in the log."""
    bad = []
    g = bed.s.github_secret.decode()
    for what, send, origin, where in (
            ("query", get("/x?a=1", host=QUERY), bed.query, "target"),
            ("path", with_own(lambda p: get("/bot%s/send" % p, host=PATH)), bed.path, "target"),
            ("body", with_own(lambda p: get("/x", "Content-Type: application/json\r\n", BODY, "POST",
                                            body=json.dumps({"t": p}).encode())), bed.body, "body"),
            ("query, h2", get2("/x?a=1", host=QUERY), bed.query, "target"),
            ("path, h2", with_own(lambda p: get2("/bot%s/send" % p, host=PATH)), bed.path, "target")):
        n = len(origin.requests)
        out = send(bed)
        q = origin.requests[-1]
        at = q.target if where == "target" else q.body.decode()
        there = g in at if what != "query" and "query" not in what else "api_key=" in at
        if out.status != 200 or len(origin.requests) != n + 1 or not there or b"REDACTED" not in out.reply.body:
            bad.append((what, "%r %s" % (out, out.reply and out.reply.body)))
        elif bed.s.scanner.search(out.reply.body, "C12 reply"):
            bad.append((what, "came back: %r" % out.reply.body))
        record = [r for r in bed.d.wait_records(1, "admitted") if r["authority"].startswith(q.get("host"))][-1]
        if record.get("path") not in ("/x", "/bot[placeholder]/send") or "query" in what and record.get("query") != "a=<1>":
            bad.append((what, str(record)))
    return 5, bad


# ---- C18, C22 ----

def uncached(bed):
    """Two sandboxes, one URL, all the leave to keep it that an origin can give."""
    seen, bad, gate = set(), [], bed.gate
    for i in range(20):
        bed.enter((bed.within, bed.other)[i % 2].gate)
        out = (get, get2)[i // 10]("/one?x=1", "If-None-Match: \"zero\"\r\n" if i % 3 == 0 else "", host=CACHED)(bed)
        names = {n for n, _ in out.reply.headers}
        seen.add(json.loads(out.reply.body)["n"])
        if names & {"age", "x-cache", "via"}:
            bad.append((str(i), str(names)))
    bed.enter(gate)
    if len(seen) != 20 or len(bed.cached.requests) < 20:
        bad.append(("all", "%d replies, %d requests" % (len(seen), len(bed.cached.requests))))
    return 20, bad


WHOLE = (3, 4, 5)  # of the replies below


def recycled(bed):
    """What one sandbox said and heard is in no answer to the other, least in those that break off."""
    bad, gate, n = [], bed.gate, 0
    short = [b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\nok", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked"
             b"\r\n\r\n1388\r\nok", b"HTTP/1.1 200 OK\r\nX-A:", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
             b"HTTP/1.1 200 \r\n\r\n", b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", b"H"]
    for i in range(28):
        bed.enter(bed.within.gate)
        get("/v1/%s?%s" % (WORD, WORD), "X-Said: %s\r\n" % (WORD * 50), host=KEYED, method="POST",
            body=(WORD * 100).encode())(bed)
        bed.enter(bed.other.gate)
        bed.odd.answer = short[i % len(short)]
        with bed.gate.tls(ODD) as st:
            st.send("GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % ODD)
            got = st.reply().raw if i % len(short) in WHOLE else st.rest()
        n += 1
        if WORD.encode() in got or bed.s.scanner.search(got, "C22"):
            bad.append((str(i), repr(got[:200])))
    bed.odd.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    bed.enter(gate)
    return n, bad


# ---- C23, C25 ----

def told(bed):
    """Nothing that the daemon says of itself holds a secret; the pages in the logs are counted right."""
    said = list(bed.outputs())
    bad = [h for i, x in enumerate(said) for h in bed.s.scanner.search(x, "output %d" % i)]
    ids = {r["id"] for r in bed.d.kinds("admitted") if r["authority"] in (reflecting.OLD, reflecting.NEW)}
    found = sum(int(r.get("count", 0)) for r in bed.d.kinds("completed") if r["id"] in ids)
    if found != bed.reflected:
        bad.append(("copies in the records", "%d, %d were sent" % (found, bed.reflected)))
    return len(said) + 1, [("%s" % (b,), "") for b in bad]


def counted(bed, out, records):
    """What goes out to a host that is allowed is on record: where to, and how much."""
    q = bed.plain.requests[-1]
    up = [r.get("bytes_up") for r in records if r["kind"] == "completed"]
    path = [(r.get("path"), r.get("query")) for r in records if r["kind"] == "admitted"]
    if out.status != 200 or up != [q.body_len] or path != [(q.path, "a=<%d>" % (len(q.query) - 2))]:
        return "%r %s %s, %d bytes arrived" % (out, up, path, q.body_len)
    return None


# ---- C26 ----

def tunnels(bed):
    """A credential is never put where nothing is looked at."""
    bad, base = [], dict(bed.d.config())
    for what, rules in (
            ("with a credential", [{"tunnel": "t.example.com", "with": {"bearer": "odd"}}]),
            ("beside one", [{"tunnel": "t.example.com"}, {"allow": "t.example.com/x", "with": {"bearer": "odd"}}]),
            ("at another port", [{"tunnel": "t.example.com:8443"}, {"allow": "t.example.com",
                                                                    "with": {"bearer": "odd"}}]),
            ("under a dot", [{"tunnel": "t.example.com"}, {"allow": ".example.com", "with": {"bearer": "odd"}}]),
            ("beside a path", [{"tunnel": "t.example.com"}, {"deny": "t.example.com/x"}])):
        base["policies"] = {"coder": {"rules": rules}}
        path = bed.test.write("c26.yaml", json.dumps(base))
        r = bed.d.command("check", path)
        if r.returncode == 0 or "c26.yaml:" not in r.stdout + r.stderr:
            bad.append((what, r.stdout + r.stderr))
    return 5, bad


ROWS = [
    Row("C1", "pages that repeat the credential",
        *[Many(p, reflecting.reflected(p)) for p in reflecting.PAIRS], Many("in trailers", reflecting.trailers),
        twin=get("/plain/x/y", host=reflecting.OLD)),
    Row("C2", "TRACE and its likes",
        *[Sweep("%s, %s" % (m, v), [(h, how("/v1/x", host=h, method=m), 405, "method") for h in (PLAIN, KEYED, SHOW)])
          for m in ("TRACE", "TRACK", "DEBUG") for v, how in BOTH],
        Sweep("Max-Forwards does not arrive", [
            ("%s %s" % (m, v),) + passes(no_max_forwards, how("/x", "Max-Forwards: 0\r\n", host=SHOW, method=m))
            for m in ("OPTIONS", "GET") for v, how in BOTH], event="completed"),
        twin=get("/x", host=SHOW, method="OPTIONS")),
    Row("C3", "our own error pages", Many("every refusal: its code, its id, nothing else", bare)),
    Row("C4", "redirects", Many("chains", chain)),
    Row("C5", "the client's own credential on a credentialed rule",
        Sweep("carriers, h1", foreign(get)), Sweep("carriers, h2", foreign(get2)),
        Sweep("a cookie does not arrive", [(v,) + passes(no_cookie, how("/v1/x", "Cookie: sid=mine\r\n", host=KEYED))
                                           for v, how in BOTH], event="completed"),
        Sweep("ids of sessions, requests and traces arrive", [
            ("%s %s" % (n, v),) + passes(arrives(n, value), how("/v1/x", "%s: %s\r\n" % (n, value), host=KEYED))
            for n, value in SESSIONS for v, how in BOTH], event="completed"),
        twin=get("/v1/x", host=KEYED)),
    Row("C6", "the rule's own credential for what the rule does not name",
        Sweep("h1", list(scoped(get))), Sweep("h2", list(scoped(get2))),
        twin=get("/repos/acme/x/issues", host=NARROW, method="POST", body=b"{}")),
    Row("C7", "one's own placeholder sent elsewhere",
        *[Sweep("%s, %s" % (h, v), list(placed(how, h, "github", BLOCKED))) for h in (PLAIN, KEYED)
          for v, how in BOTH],
        Sweep("a host of no rule", list(to_nowhere())), twin=get("/v1/x", host=KEYED)),
    Row("C8", "another sandbox's placeholder",
        *[Sweep("%s, %s" % (h, v), list(placed(how, h, "other", CROSS))) for h in (PLAIN, KEYED)
          for v, how in BOTH],
        Sweep("in the very slot", [
            (f, with_own(lambda p, f=f: get("/user", f.format(p) + "\r\n", host="api.github.com"), "other")) + CROSS
            for f in ("Authorization: Bearer {}", "Authorization: token {}", "Authorization: {}")]),
        twin=with_own(lambda p: get("/user", "Authorization: token %s\r\n" % p, host="api.github.com"))),
    Row("C9", "one provider's placeholder to another",
        *[Sweep("%s's, %s" % (own, v), list(placed(how, h, own, BLOCKED)))
          for own, h in (("github", "api.openai.com"), ("github", SHOW), ("openai", SHOW))
          for v, how in BOTH],
        twin=with_own(lambda p: get("/v1/models", "Authorization: Bearer %s\r\n" % p, host="api.openai.com"),
                      "openai")),
    Row("C10", "one placeholder, several rules", Sweep("each serves", right_places("github", "api.github.com") +
                                                       right_places("openai", KEYED), event="completed")),
    Row("C12", "secrets in URLs and bodies", Many("right there, and nowhere else", hidden)),
    Row("C13", "coded replies", *[Many(p, reflecting.coded(p)) for p in reflecting.PAIRS],
        twin=get("/plain/x/y", host=reflecting.OLD)),
    Row("C14", "a part at a time", *[Many(p, reflecting.ranges(p)) for p in reflecting.PAIRS],
        twin=get("/plain/x/y", host=reflecting.OLD)),
    Row("C15", "cut in two anywhere", *[Many(p, reflecting.split(p)) for p in reflecting.PAIRS],
        twin=get2("/plain/x/y", host=reflecting.OLD)),
    Row("C18", "no cache", Many("two sandboxes, one URL", uncached), twin=get("/one", host=CACHED)),
    Row("C19", "a value that would split a field",
        Sweep("every control", [("%02x" % b, get("/x", host="b%d.worst.example.com" % b), 503, "secret_unavailable")
                                for b in BYTES])),
    Row("C22", "another's bytes in a recycled buffer", Many("replies that break off", recycled)),
    Row("C23", "what the daemon tells of itself", Many("listings, metrics, events, logs", told)),
    Row("C25", "data to an allowed host", Sweep("on record", [
        ("%d bytes, %s" % (n, v), how("/up/%s?a=%s" % ("d" * (n % 900), "q" * (n % 700)), host=PLAIN, method="POST",
                                      body=b"x" * n), counted)
        for n in (1, 1000, 16000, 60000) for v, how in BOTH], event="completed")),
    Row("C26", "a tunnel with a credential", Many("load errors", tunnels)),
]
