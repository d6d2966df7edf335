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
