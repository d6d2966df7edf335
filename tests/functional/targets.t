#!/usr/bin/python3 -B
"""Odd queries and paths that clients send every day arrive: byte for byte, or percent-encoded as browsers
do it; by five clients, in both versions, with and without a credential. Where a signature covers the target
nothing is spelled anew: refused, with a code of its own."""
import json
import os
import shutil
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import client, durward, h2, origin, scene, shapes, tap  # noqa: E402

PLAIN, KEYED = "odd.example.com", "odd-keyed.example.com"
QUERIES = [
    "x={y}", "{x}=y", "a|b", "a=1|2|3", "a^b", "x=`id`", "re=\\d+", "p=C:\\Users\\me", '{"a":1}', 'q={"a":["b"]}',
    'filter={"where":{"n":{"gt":3}}}', "a<b", "a>b", "a<=b&c=>d", 'q="exact words"'.replace(" ", "+"), '"', "<", ">",
    "<script>alert(1)</script>", "é=ü", "q=naïve", "q=日本語", "q=🙂", "q=Ω≈ç", "city=Köln&zip=50667", "q=a\\",
    "fields=a{b,c{d}}", "jq=.[]|.a", "tags[]=a&tags[]=b", "ids[0]=1", "a=b=c", "a==", "=", "&&", "a&b&c", "?", "a?b?c=/d",
    "a=/x/../y", "a=//host/p", "u=https://e.example/?q=1", "a=%20+%2B", "a=%zz", "%", "a=%", "a=%00", "t=12:30@x", "a=(b)",
    "a=*!$,;~-._", "$filter=a eq 'b'".replace(" ", "%20"), "a='b'", "~^`|{}\\", 'mix="é|{`^<\\>}"', "@", "a=;b",
]
PATHS = ["/a|b", "/a/{id}", "/a^b", "/`x`", "/a{b|c}^`", '/a"b"', "/<a>", "/é", "/日本/語", "/🙂?q=ü|x", "/a'b(c)"]
CLIENTS = {"curl": ("h1", "h2"), "urllib": ("h1",), "httpx": ("h1", "h2"), "node": ("h1", "h2"), "go": ("h1", "h2")}
# these write what they were given as they see fit: the same to whoever decodes it
SPELLERS = ("httpx", "node h1", "go paths", "curl paths")
SIGNED = {
    "SigV4": [("Authorization", "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, "
               "SignedHeaders=host, Signature=00")],
    "RFC 9421": [("Signature-Input", 'a=("@query");created=1'), ("Signature", "a=:AAAA:")],
    "SharedKey": [("Authorization", "SharedKey account:AAAA")],
    "Digest": [("Authorization", 'Digest username="u", uri="/"')],
    "DPoP": [("DPoP", "a.b.c")],
    "a signature of a vendor's own": [("X-Acme-Signature", "00")],
}


def spelled(target):
    return "".join(c if c not in '"<>' and ord(c) < 0x80 else urllib.parse.quote(c) for c in target)


def arrived(client, sent, got):
    if client in SPELLERS:
        return got.isascii() and urllib.parse.unquote(got) == urllib.parse.unquote(sent)
    return got == spelled(sent)


def asks(box, name, version, base, targets):
    """-> [[status, target]], or why it could not be asked."""
    said = json.dumps(targets)
    if name == "node":
        if shutil.which("node") is None:
            return "node is not installed"
        line = "node --no-warnings %s/targets.mjs %s %s" % (durward.INSIDE, version, base)
    elif name == "go":
        program = os.path.join(durward.clients_dir(), "bin", "oddget")
        if not os.path.exists(program):
            return "oddget is not built: run tests/functional/clients/setup with Go"
        line = "%s %s %s" % (program, version, base)
    else:
        python = os.path.join(durward.clients_dir(), "venv/bin/python") if name == "httpx" else durward.PYTHON
        if not os.path.exists(python):
            return "the client libraries are not there: run tests/functional/clients/setup"
        line = "%s %s/targets.py %s %s %s" % (python, durward.INSIDE, name, version, base)
    status, out, err = box.sh(line, stdin=said, timeout=120)
    if status != 0:
        raise RuntimeError("%s %s: %s%s" % (name, version, out[-500:], err[-1500:]))
    return json.loads(out)


def trial(t, box, name, version, host):
    known = urllib.parse.quote if name == "urllib" else lambda x, safe: x
    # urllib takes ASCII only
    queries = ["/q?" + (q if q.isascii() else known(q, safe="=&|{}<>`^\\\"")) for q in QUERIES]
    paths = [p if p.isascii() else known(p, safe="/?=|{}<>`^\\\"") for p in PATHS]
    what = "%s over %s to %s" % (name, version, host)
    got = asks(box, name, version, "https://" + host, queries + paths)
    if isinstance(got, str):
        t.skip(what, got)
        return
    for part, sent, answers in (("queries", queries, got), ("paths", paths, got[len(queries):])):
        who = next((w for w in (name, "%s %s" % (name, version), "%s %s" % (name, part)) if w in SPELLERS), name)
        bad = [(s, a) for s, a in zip(sent, answers) if a[0] != 200 or not arrived(who, s, a[1])]
        t.ok(not bad, "%s: %d odd %s arrive" % (what, len(sent), part), *[repr(b) for b in bad[:12]])


def malformed(t, s, box):
    """Go's client tries again for ever where a stream is reset without an answer."""
    before = len(s.d.kinds("denied"))
    got = asks(box, "go", "te", "https://" + PLAIN, ["/x"])
    if isinstance(got, str):
        t.skip("a malformed request of Go's", got)
        return
    t.ok(got[0][0] == 400 and got[0][1].startswith("bad_header "), "a malformed request of Go's client is answered",
         repr(got))
    made = s.d.wait_records(before + 1, "denied")[before:]
    t.eq([r["code"] for r in made], ["bad_header"], "and asked once")


def raw(gate, host, target, fields=()):
    """The bytes themselves, as no client library would."""
    with gate.tls(host) as st:
        lines = ["GET %s HTTP/1.1" % target, "Host: " + host] + ["%s: %s" % f for f in fields]
        return st.ask("\r\n".join(lines).encode("utf-8") + b"\r\n\r\n")


def told(t, gate):
    """Refused where a signature covers it, carried where none does and where nothing is spelled anew."""
    for name, fields in SIGNED.items():
        r = raw(gate, PLAIN, '/x?q="a"', fields)
        t.eq((r.status, r.code), (400, "signed_target"), "%s: a quote in the query" % name)
        r = raw(gate, PLAIN, "/é", fields)
        t.eq((r.status, r.code), (400, "signed_target"), "%s: UTF-8 in the path" % name)
        r = raw(gate, PLAIN, "/x?q={a}|`b^\\", fields)
        t.ok(r.status != 400, "%s: what is carried as it came is" % name, "%r %r" % (r.status, r.code))
    for query in ("X-Amz-Signature=00", "sig=AA", "X-Goog-Signature=00", "Signature=x"):
        r = raw(gate, PLAIN, "/x?n=é&" + query)
        t.eq((r.status, r.code), (400, "signed_target"), "presigned by %s: UTF-8 in the query" % query)
    for host in SIGNERS:
        r = raw(gate, host, "/x?q=<a>")
        t.eq((r.status, r.code), (400, "signed_target"), "a rule that signs (%s)" % host)
    for fields in ([("Authorization", "Bearer x")], [("Authorization", "opaque")], []):
        r = raw(gate, PLAIN, '/x?q="é"', fields)
        t.ok(r.code != "signed_target", "not signed: %s" % fields, "%r %r" % (r.status, r.code))


SIGNERS = {"signs-hmac.example.com": {"hmac": {"key": "signer", "text": "{method}{target}",
                                               "headers": {"X-Mac": "{signature}"}}}}
REFUSED = {"%ff alone": b"/x?q=\xff", "over-long": b"/x?q=\xc0\xaf", "half a character": b"/x?q=\xe2\x82",
           "a surrogate": b"/x?q=\xed\xa0\x80", "Latin-1": b"/caf\xe9", "a backslash in the path": b"/a\\b",
           "a fragment": b"/x?q=#f", "DEL": b"/x?q=\x7f", "a control": b"/x?q=\x01", "a tab": b"/x?q=\t"}


def refused(t, gate):
    for name, target in REFUSED.items():
        with gate.tls(PLAIN) as st:
            r = st.ask(b"GET " + target + b" HTTP/1.1\r\nHost: " + PLAIN.encode() + b"\r\n\r\n")
            t.ok(r.status == 400 and r.code in ("bad_target", "bad_request_line"), "refused: " + name,
                 "%r %r" % (r.status, r.code))
        with h2.H2(gate, PLAIN) as c:
            a = c.answer(c.open([(":method", "GET"), (":scheme", "https"), (":authority", PLAIN),
                                 (b":path", target)]), 5)
            t.ok(a.status == 400 or a.reset is not None, "refused over h2: " + name, "%r" % a.status)


def main(t):
    s = scene.Scene(t)
    plain = s.add(PLAIN, shapes.echo)
    keyed = s.add(KEYED, origin.needs(s.openai_credential, shapes.echo))
    s.rule(allow=PLAIN)
    s.d.secret("text", b"a key of thirty-two bytes or more")
    s.d.secrets["signer"] = {"hmac_key": {"key": "text"}}
    for host, how in SIGNERS.items():
        s.add(host, shapes.echo)
        s.rule(allow=host, **{"with": how})
    s.rule(allow=KEYED, **{"with": {"bearer": "openai"}})
    box = durward.Sandbox(s.d, binds=durward.client_binds("venv", "bin"))
    for name, versions in CLIENTS.items():
        for version in versions:
            for host in (PLAIN, KEYED):
                t.part(trial, t, box, name, version, host)
    t.part(malformed, t, s, box)
    box.close()
    for o in (plain, keyed):
        bad = [r.target for r in o.requests if any(not 0x21 <= ord(c) < 0x7f or c in '"<>' for c in r.target)]
        t.eq(bad, [], "%s was asked in printable ASCII only" % o.names[0])
    s.judge([(plain, None), (keyed, s.openai_credential)], (), "odd targets", exact=False)
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    told(t, gate)
    h2.needed()
    refused(t, gate)


tap.run(main, timeout=240)
