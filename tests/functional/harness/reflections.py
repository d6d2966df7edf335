"""The forms in which an origin may send a credential back (the table in SPECIFICATION.md), and what is
left of them."""
import base64
import urllib.parse


def mark(n, name):
    text = b"[REDACTED:" + name.encode() + b"]"
    return text[:n] + b"*" * (n - len(text))


def each(secret, form):
    return b"".join(form % b for b in secret)


def escaped(secret, pairs):
    return b"".join(pairs.get(bytes([b]), bytes([b])) for b in secret)


JSON = {b'"': b'\\"', b"\\": b"\\\\"}
HTML = {b"&": b"&amp;", b"<": b"&lt;", b">": b"&gt;", b'"': b"&quot;", b"'": b"&#39;"}


def base64_parts(secret):
    """(name, before, form, after): what of base64 text is made of the secret's bits alone."""
    for shift in range(3):
        text = base64.b64encode(b"~~~"[:shift] + secret + b"?>")
        first, usable = (8 * shift + 5) // 6, 8 * (shift + len(secret)) // 6
        parts = text[:first], text[first:usable], text[usable:]
        yield ("base64+%d" % shift,) + parts
        yield ("base64url+%d" % shift,) + tuple(
            p.replace(b"+", b"-").replace(b"/", b"_") for p in parts)


def shapes(secret, pair=None):
    """[(name, before, form, after)]: before and after are not replaced."""
    found = [
        ("raw", b"x", secret, b"x"),
        ("in JSON text", b'{"authorization": "Bearer ', secret, b'"}'),
        ("at the very end", b"token=", secret, b""),
        ("at the very beginning", b"", secret, b" tail"),
        ("after a part of itself", secret[:9], secret, secret[:9]),
        ("hex", b"0x", secret.hex().encode(), b"g"),
        ("HEX", b"0x", secret.hex().upper().encode(), b"g"),
        ("percent", b"/?t=", each(secret, b"%%%02x"), b"&u=1"),
        ("PERCENT", b"/?t=", each(secret, b"%%%02X"), b"&u=1"),
        ("percent usual", b"/?t=", urllib.parse.quote(secret, safe="").encode(), b"&u=1"),
        ("percent of a path", b"/?t=", urllib.parse.quote(secret).encode(), b"&u=1"),
        ("form", b"t=", urllib.parse.quote_plus(secret).encode(), b"&u=1"),
        ("JSON \\u00xx", b'"', each(secret, b"\\u%04x"), b'"'),
        ("JSON \\u00XX", b'"', each(secret, b"\\u%04X"), b'"'),
        ("JSON usual", b'"', escaped(secret, JSON), b'"'),
        ("JSON with \\/", b'"', escaped(secret, {b"/": b"\\/", **JSON}), b'"'),
        ("HTML decimal", b"<b>", each(secret, b"&#%d;"), b"</b>"),
        ("HTML hex", b"<b>", each(secret, b"&#x%x;"), b"</b>"),
        ("HTML HEX", b"<b>", each(secret, b"&#x%X;"), b"</b>"),
        ("HTML usual", b"<b>", escaped(secret, HTML), b"</b>"),
        ("UTF-16LE", b"x\0", secret.decode().encode("utf-16-le")[:-1], b"\0x\0"),
        ("UTF-16BE", b"\0x\0", secret.decode().encode("utf-16-be")[1:], b"\0x"),
    ] + list(base64_parts(secret))
    if pair:
        found.append(("Basic as sent", b"Basic ", base64.b64encode(pair), b" x"))
        found.append(("Basic, url-safe", b"Basic ", base64.urlsafe_b64encode(pair), b" x"))
    return found


def field_safe(body):
    return all(0x20 <= b < 0x7f for b in body) and body == body.strip()


# ---- where it stands: pages as services really send them ----

class Hit(bytes):
    """A part of a page that is to be replaced."""


def sent(parts):
    return b"".join(parts)


def wanted(parts, name):
    return b"".join(mark(len(p), name) if isinstance(p, Hit) else p for p in parts)


def hits(parts):
    return sum(isinstance(p, Hit) for p in parts)


def within_base64(before, secret, after, url=False):
    """The secret inside something that is base64 as a whole."""
    text = (base64.urlsafe_b64encode if url else base64.b64encode)(before + secret + after)
    first = (8 * len(before) + 5) // 6
    usable = 8 * (len(before) + len(secret)) // 6
    return [text[:first], Hit(text[first:usable]), text[usable:]]


def _fields(raw, pct, hexed, page):
    """(name, status, [(field, parts)], parts): in a field of the head."""
    at = b"https://origin.example/cb?token="
    for name, value in (
            ("X-Debug", [raw]), ("X-Forwarded-Authorization", [b"Bearer ", raw]),
            ("Authorization", [b"Bearer ", raw]), ("ETag", [b'"', hexed, b'"']),
            ("WWW-Authenticate", [b'Bearer error="invalid", token="', pct, b'"']),
            ("Authentication-Info", [b"nextnonce=", hexed]),
            ("Link", [b"<" + at, pct, b'>; rel="next"']), ("Content-Location", [b"/a?t=", pct]),
            ("Set-Cookie", [b"sid=", pct, b"; Path=/; HttpOnly"]),
            ("Content-Disposition", [b'attachment; filename="', pct, b'.txt"']),
            ("Server-Timing", [b'db;desc="', pct, b'"']), ("Refresh", [b"0; url=" + at, pct]),
            ("Warning", [b'199 - "', pct, b'"']), ("X-Request-Id", page("r-", "-1")),
            ("X-Amz-Meta-Token", [raw, b";", raw]), ("Access-Control-Allow-Headers", [b"x, ", hexed]),
            ("Content-Security-Policy", [b"report-uri /r?t=", pct]), ("P3p", [b'CP="', hexed, b'"'])):
        yield "field " + name, 200, [(name, value)], [b"{}"]
    yield "in two fields and the body", 200, [("X-One", [raw]), ("X-Two", [b"b ", raw])], [b"<", raw, b">"]
    for status in (301, 302, 303, 307, 308):
        yield "Location of a %d" % status, status, [("Location", [at, pct, b"&x=1"])], [b"moved"]
    yield "of a reply without a body", 204, [("X-Debug", [raw])], []


def _texts(raw, js, html, pct, plus, page):
    dump = [b"GET /v1 HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ", raw, b"\r\nAccept: */*\r\n\r\n"]
    yield "httpbin /headers", 200, "application/json", [b'{"headers": {"Authorization": "Bearer ', js, b'"}}']
    yield "three copies in JSON", 200, "application/json", [
        b'{"a": "', js, b'", "b": ["', js, b'"], "c": {"d": "x', js, b'y"}}']
    yield "the request as message/http", 200, "message/http", dump
    yield "the request in a JSON string", 200, "application/json", [
        b'{"raw": "GET / HTTP/1.1\\r\\nAuthorization: Bearer ', js, b'\\r\\n\\r\\n"}']
    yield "HTML table", 500, "text/html", [b"<table><tr><td>Authorization</td><td>Bearer ", html, b"</td></tr>"]
    yield "HTML comment", 200, "text/html", [b"<!-- ", raw, b" -->"]
    yield "HTML link", 200, "text/html", [b'<a href="/x?token=', pct, b'&amp;y=1">next</a>']
    yield "HTML form", 200, "text/html", [b'<input type=hidden name=t value="', html, b'">']
    yield "print_r", 200, "text/plain", [b"Array\n(\n    [HTTP_AUTHORIZATION] => Bearer ", raw, b"\n)\n"]
    yield "environment of a CGI", 500, "text/plain", [b"HTTP_AUTHORIZATION=Bearer ", raw, b"\nPATH=/bin\n"]
    yield "GraphQL error", 200, "application/json", [
        b'{"errors":[{"message":"bad token ', js, b'","extensions":{"code":401}}]}']
    yield "JSON-RPC error", 200, "application/json", [b'{"jsonrpc":"2.0","error":{"data":"', js, b'"},"id":1}']
    yield "problem+json of a 401", 401, "application/problem+json", [b'{"detail":"', js, b' is expired"}']
    yield "a 404 page", 404, "text/html", [b"<p>no user for ", html, b"</p>"]
    yield "a 422 with the input", 422, "application/json", [b'{"input":"', js, b'"}']
    yield "a stack trace", 500, "text/plain", [b"Traceback:\n  auth(token=", raw, b")\nKeyError\n"]
    yield "XML attribute", 200, "application/xml", [b'<r a="', html, b'"/>']
    yield "CDATA", 200, "application/xml", [b"<r><![CDATA[", raw, b"]]></r>"]
    yield "SOAP fault", 500, "text/xml", [b"<s:Fault><faultstring>", html, b"</faultstring></s:Fault>"]
    yield "YAML", 200, "application/yaml", [b"token: ", raw, b"\nuser: x\n"]
    yield "ini", 200, "text/plain", [b"[default]\ntoken=", raw, b"\n"]
    yield "CSV", 200, "text/csv", [b"id,token\n1,", raw, b"\n2,none\n"]
    yield "lines of JSON", 200, "application/x-ndjson", [b'{"i":1}\n{"t":"', js, b'"}\n{"t":"', js, b'"}\n']
    yield "server-sent events", 200, "text/event-stream", [b"event: a\ndata: ", raw, b"\n\ndata: ", raw, b"\n\n"]
    yield "JSONP", 200, "text/javascript", [b'cb({"t":"', js, b'"});']
    yield "a script", 200, "text/javascript", [b'var t = "', js, b'";\n']
    yield "a form", 200, "application/x-www-form-urlencoded", [b"a=1&access_token=", plus, b"&b=2"]
    yield "multipart", 200, "multipart/form-data; boundary=b", [
        b'--b\r\nContent-Disposition: form-data; name="t"\r\n\r\n', raw, b"\r\n--b--\r\n"]
    yield "a data: URL", 200, "text/css", [b"a{b:url(data:text/plain;base64,"] + page("token ", " end") + [b")}"]
    yield "a JWT's claims", 200, "application/json", [b'{"jwt":"eyJh.'] + page('{"t":"', '"}', True) + [b'.c2ln"}']
    yield "a Basic pair", 200, "text/plain", [b"Authorization: Basic "] + page("user:", "")
    yield "a curl command", 200, "text/plain", [b"curl -H 'Authorization: Bearer ", raw, b"' https://x/\n"]
    yield "a log line", 200, "text/plain", [b'10.0.0.1 - - "GET /?t=', pct, b' HTTP/1.1" 200 1\n']
    yield "a metric's label", 200, "text/plain", [b'requests_total{token="', js, b'"} 1\n']
    yield "a mail", 200, "message/rfc822", [b"Subject: your key\r\n\r\nKey: ", raw, b"\r\n"]


def _bytes(raw, secret):
    yield "a length and bytes, as protobuf", [b"\x0a", bytes([len(secret)]), raw, b"\x10\x01"]
    yield "a pkt-line", [b"%04x" % (len(secret) + 5), raw, b"\n0000"]
    yield "between NULs", [b"\0\0", raw, b"\0\0"]
    yield "between bytes above 127", [b"\xff\xfe", raw, b"\x80\x81"]
    yield "twice, side by side", [raw, raw]
    yield "after all but its last byte", [secret[:-1], raw]
    yield "before all but its last byte", [raw, secret[:-1]]
    yield "after 40,000 bytes", [b"a" * 40000, raw]
    yield "a hundred times", [raw, b"\n"] * 100
    yield "across 16 KiB", [b"b" * (16384 - len(secret) // 2), raw, b"b" * 100]


def pages(secret):
    """[(name, status, [(field, parts)], parts of the body)]: parts are bytes; those that are Hit are replaced."""
    raw, js = Hit(secret), Hit(escaped(secret, JSON))
    html, pct = Hit(escaped(secret, HTML)), Hit(urllib.parse.quote(secret, safe="").encode())
    plus, hexed = Hit(urllib.parse.quote_plus(secret).encode()), Hit(secret.hex().encode())

    def page(before, after, url=False):
        return within_base64(before.encode(), secret, after.encode(), url)
    found = list(_fields(raw, pct, hexed, page))
    found += [(name, status, [("Content-Type", [kind.encode()])], body)
              for name, status, kind, body in _texts(raw, js, html, pct, plus, page)]
    found += [(name, 200, [("Content-Type", [b"application/octet-stream"])], body)
              for name, body in _bytes(raw, secret)]
    found += [("form: " + name, 200, [("Content-Type", [b"text/plain"])], [before, Hit(form), after])
              for name, before, form, after in shapes(secret)]
    return found
