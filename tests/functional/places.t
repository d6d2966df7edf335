#!/usr/bin/python3 -B
"""C12: credentials that are no header of their own: query parameter, cookie, and the sandbox's placeholder
where it wrote it: header, query, path, JSON and form bodies. By curl inside a sandbox; what arrives
is read by Python's own parsers of URLs, cookies, JSON and forms."""
import http.cookies
import json
import os
import re
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scan, scene, tap  # noqa: E402

ODD = b'p:a+s/s&w=r"d\\ %;e'     # every byte of it means something somewhere
HOSTS = {"query.example.com": {"query": {"api_key": "plain"}},
         "odd.example.com": {"query": {"api_key": "odd"}},
         "cookie.example.com": {"cookie": {"sid": "plain"}},
         "badcookie.example.com": {"cookie": {"sid": "odd"}},
         "pair.example.com": {"header": {"name": "apikey", "secret": "plain", "and": "bearer"}},
         "path.example.com": {"placeholder": {"secret": "bot", "in": "path"}},
         "badpath.example.com": {"placeholder": {"secret": "odd", "in": "path"}},
         "header.example.com": {"placeholder": {"secret": "plain", "in": "header", "name": "X-Sig"}},
         "param.example.com": {"placeholder": {"secret": "odd", "in": "query", "name": "tok"}},
         "body.example.com": {"placeholder": {"secret": "odd", "in": {"body": ["/a/1/key", "/0", "/t", "token"]}}},
         "twice.example.com": {"placeholder": {"secret": "odd", "in": [{"body": "token"}, "query"],
                                               "name": "t", "count": 2}}}


def echo(req, conn):
    conn.reply(req, 200, b"{}")


class Run:
    def __init__(self, t):
        self.t, self.s = t, scene.Scene(t)
        self.plain = scan.canary("pl-")
        self.odd = scan.canary("odd-") + ODD
        self.s.scanner.add("plain", self.plain)
        self.bot = b"110201543:" + scan.canary("AA-") + b"+/=&$,@"
        self.s.scanner.add("odd", self.odd)
        self.s.scanner.add("bot", self.bot)
        self.s.d.secret("bot", self.bot)
        self.s.d.secret("plain", self.plain)
        self.s.d.secret("odd", self.odd)
        self.origins = {}
        for host, how in HOSTS.items():
            self.origins[host] = self.s.add(host, echo)
            more = {"cookies": "pass"} if host == "cookie.example.com" else {}
            self.s.rule(allow=host, **{"with": how}, **more)
        self.s.env.update({"PLAIN": "{{placeholder plain}}", "ODD": "{{placeholder odd}}",
                           "BOT": "{{placeholder bot}}"})
        self.box = durward.Sandbox(self.s.d)
        self.out = []

    def curl(self, host, path, *more):
        """-> (status, request at the origin or None, code of a refusal)"""
        o = self.origins[host]
        before = len(o.requests)
        status, out, err = self.box.sh(
            "curl -sS -o /dev/stderr -w '%%{http_code}' %s \"https://%s%s\"" % (
                " ".join(more), host, path))
        self.out += [out, err]
        said = re.search(r"(?:\A|\n)(?:denied|refused|failed) (\w+) \S+\n\Z", err) or \
            re.search(r'"type":"durward_\w+","code":"(\w+)"', err)
        code = said and said.group(1)
        return out, o.requests[-1] if len(o.requests) > before else None, code

    def refused(self, host, path, *more, code, status="403", what):
        out, req, got = self.curl(host, path, *more)
        self.t.ok(out == status and req is None and got == code, "%s: %s %s" % (what, status, code),
                  out, str(got), str(req and req.raw))


def queries(t, r):
    want = r.plain.decode()
    for path, what in (("/x", "absent"), ("/x?api_key=$PLAIN", "a placeholder"),
                       ("/x?a=1&api_key=$PLAIN&b=2", "among others")):
        _, req, _ = r.curl("query.example.com", path)
        got = urllib.parse.parse_qsl(req.query)
        t.ok(got.count(("api_key", want)) == 1 and len([k for k, _ in got if k == "api_key"]) == 1,
             "query parameter: " + what, req.target)
        t.eq([k for k, _ in got if k != "api_key"], ["a", "b"] if "b=2" in path else [],
             "the others as they were")
    _, req, _ = r.curl("odd.example.com", "/x?q=%20")
    t.eq(urllib.parse.parse_qs(req.query), {"q": [" "], "api_key": [r.odd.decode()]},
         "query parameter: a value that needs escapes")
    r.refused("query.example.com", "/x?api_key=own", code="foreign_credential",
              what="the client's own parameter")
    r.refused("query.example.com", "/x?other=$PLAIN", code="secret_blocked",
              what="a placeholder in another parameter")
    r.refused("query.example.com", "/x?api_key=$ODD", code="secret_blocked",
              what="another secret's placeholder")


def cookies(t, r):
    want = r.plain.decode()
    for header, others in (("", {}), ("-H \"Cookie: a=1; sid=$PLAIN; b=2\"", {"a": "1", "b": "2"}),
                           ("-b \"a=1;b=2\"", {"a": "1", "b": "2"})):
        _, req, _ = r.curl("cookie.example.com", "/", header)
        t.eq(len(req.all("cookie")), 1, "one Cookie field")
        got = {k: v.value for k, v in http.cookies.SimpleCookie(req.get("cookie")).items()}
        t.eq(got, dict(others, sid=want), "cookie beside %s" % (sorted(others) or "nothing"))
    r.refused("cookie.example.com", "/", "-b sid=mine", code="foreign_credential",
              what="the client's own cookie")
    r.refused("badcookie.example.com", "/", code="fill", status="503",
              what="a value that no cookie can hold")


def pairs(t, r):
    """Two fields with one key, as the clients of some APIs write them."""
    want = r.plain.decode()
    key, bearer = '-H "apikey: $PLAIN"', '-H "Authorization: Bearer $PLAIN"'
    for fields, arrived in (((key, bearer), ([want], ["Bearer " + want])), ((key,), ([want], [])),
                            ((bearer,), ([], ["Bearer " + want])), ((), ([want], []))):
        _, req, code = r.curl("pair.example.com", "/", *fields)
        t.eq(req and (req.all("apikey"), req.all("authorization")), arrived,
             "%d of two fields written, and filled" % len(fields)) or t.diag(str(code))
    r.refused("pair.example.com", "/", key, "-H 'Authorization: Bearer mine'", code="foreign_credential",
              what="a token of the client's own beside the key")
    r.refused("pair.example.com", "/", key, "-H \"Authorization: Bearer $ODD\"", code="secret_blocked",
              what="another secret's placeholder beside the key")


def heads(t, r):
    _, req, _ = r.curl("path.example.com", "/bot$BOT/send?x=1")
    t.eq((urllib.parse.unquote(req.path), req.query), ("/bot%s/send" % r.bot.decode(), "x=1"),
         "placeholder in the path")
    t.eq(req.path.count("/"), 2, "and the secret's own slash is escaped")
    r.refused("path.example.com", "/bot/send", code="placeholder_count", what="no placeholder")
    r.refused("path.example.com", "/$BOT/$BOT", code="placeholder_count", what="two of them")
    r.refused("path.example.com", "/$BOT?x=$BOT", code="secret_blocked", what="one out of place")
    r.refused("path.example.com", "/$PLAIN", code="secret_blocked", what="another secret's")
    r.refused("badpath.example.com", "/$ODD", code="fill", status="503",
              what="a value that would make the path another")
    _, req, _ = r.curl("header.example.com", "/", "-H \"X-Sig: v1 key=$PLAIN; x\"")
    t.eq(req.all("x-sig"), ["v1 key=%s; x" % r.plain.decode()], "placeholder in a header")
    r.refused("header.example.com", "/", "-H \"X-Other: $PLAIN\"", code="secret_blocked",
              what="another header")
    r.refused("header.example.com", "/", "-H \"X-Sig: mine\"", code="foreign_credential",
              what="the client's own value")
    _, req, _ = r.curl("param.example.com", "/?a=1&tok=x$ODD&b=2")
    t.eq(urllib.parse.parse_qsl(req.query), [("a", "1"), ("tok", "x" + r.odd.decode()), ("b", "2")],
         "placeholder in a parameter")
    r.refused("param.example.com", "/?a=$ODD", code="secret_blocked", what="another parameter")


def bodies(t, r):
    want = r.odd.decode()
    json_type = "-H 'Content-Type: application/json'"
    _, req, _ = r.curl("body.example.com", "/", json_type,
                       "-d \"{\\\"a\\\": [1, {\\\"key\\\": \\\"x$ODD\\\"}], \\\"b\\\": 2}\"")
    t.eq(req.json(), {"a": [1, {"key": "x" + want}], "b": 2}, "placeholder in a JSON body")
    t.eq(int(req.get("content-length")), len(req.body), "with its length")
    _, req, _ = r.curl("body.example.com", "/", "-H Content-Type:", "-d \"{\\\"t\\\": \\\"$ODD\\\"}\"")
    t.eq((req.json(), req.all("content-type")), ({"t": want}, []), "in one of no type, where a field is a JSON pointer")
    _, req, _ = r.curl("body.example.com", "/", "-d \"a=1&token=$ODD\" -d b=2")
    t.eq(urllib.parse.parse_qsl(req.body.decode()), [("a", "1"), ("token", want), ("b", "2")],
         "placeholder in a form")
    _, req, _ = r.curl("body.example.com", "/", "-H 'Transfer-Encoding: chunked'", json_type,
                       "-d \"[\\\"$ODD\\\"]\"")
    t.eq(req.json(), [want], "placeholder in a chunked body")
    _, req, _ = r.curl("twice.example.com", "/?t=$ODD", "-d \"token=$ODD\"")
    t.eq((urllib.parse.parse_qs(req.query)["t"], urllib.parse.parse_qs(req.body.decode())["token"]),
         ([want], [want]), "twice: in the query and in the body")
    for path, how, body in (("username", json_type, '{\\"username\\": \\"$ODD\\", \\"t\\": \\"x\\"}'),
                            ("a key", json_type, '{\\"$ODD\\": 1}'),
                            ("below the field", json_type, '{\\"t\\": {\\"u\\": \\"$ODD\\"}}'),
                            ("another index", json_type, '[1, \\"$ODD\\"]'),
                            ("an escape before it", json_type, '{\\"t\\": \\"\\\\\\\\$ODD\\"}'),
                            ("no JSON", json_type, '{\\"t\\": \\"$ODD\\"'),
                            ("two texts", json_type, '{\\"t\\": \\"$ODD\\"} {}'),
                            ("another field", "", "user=$ODD&token=x"), ("a name", "", "$ODD=token"),
                            ("a semicolon", "", "user=x;token=$ODD"), ("behind it", "", "token=x;user=$ODD")):
        r.refused("body.example.com", "/", how, "-d \"%s\"" % body, code="secret_blocked", what="in a body: " + path)
    r.refused("twice.example.com", "/?t=$ODD", "-d x=1", code="placeholder_count", what="only once")
    r.refused("body.example.com", "/", json_type, "-d '{}'", code="placeholder_count",
              what="a body without one")
    r.refused("body.example.com", "/", json_type, "-d \"[\\\"$ODD $ODD\\\"]\"",
              code="placeholder_count", what="a body with two")
    r.refused("body.example.com", "/", "-H 'Content-Type: text/plain'", "-d \"$ODD\"",
              code="placeholder_count", what="a body of another type")
    r.refused("body.example.com", "/?x=$ODD", json_type, "-d '{}'", code="secret_blocked",
              what="not in the body")
    big = "(printf '{\"t\":\"%%s\",\"f\":\"' $ODD; head -c %d /dev/zero | tr '\\0' x; printf '\"}')"
    for size, ok in ((900000, True), (1100000, False)):
        r.box.sh((big % size) + " > /tmp/big.json")
        out, req, code = r.curl("body.example.com", "/", json_type, "--data-binary @/tmp/big.json")
        if ok:
            t.ok(req and req.body_len == size + len(json.dumps(want)) - 2 + 15,
                 "a body of %d bytes" % size, out, str(req and req.body_len))
        else:
            t.eq((out, code), ("413", "body_too_large"), "a body over 1 MiB")
    out, _, code = r.curl("body.example.com", "/", json_type, "-H 'Transfer-Encoding: chunked'",
                          "--data-binary @/tmp/big.json")
    t.eq((out, code), ("413", "body_too_large"), "a chunked one")


def main(t):
    r = Run(t)
    queries(t, r)
    cookies(t, r)
    pairs(t, r)
    heads(t, r)
    bodies(t, r)
    names = {x["authority"]: x.get("credential") for x in r.s.d.kinds("admitted")}
    t.eq((names.get("path.example.com"), names.get("cookie.example.com")), ("bot", "plain"),
         "the log names the secret")
    e = r.s.d.command("explain", "-c", r.s.d.conf, "GET", "https://path.example.com/x").stdout
    t.ok("credential: bot" in e and "in place of its placeholder in path" in e,
         "explain says where it goes", e)
    scan.scan_sandbox(t, r.box, r.s.scanner)
    r.out.append(r.box.close()[1])
    r.s.judge([(o, None) for o in r.origins.values()], r.out, "places", exact=False)


tap.run(main, timeout=180)
