#!/usr/bin/python3 -B
"""HTTP/1.1 and HTTP/2 on each side of the gate, one table: what a request and a reply carry, with and
without a credential; nghttpd and nginx as origins of HTTP/2, curl and nghttp as clients of it."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, h2, h2_frames, origin, scene, tap  # noqa: E402

BIG = 3 << 20
FRAMES = ("h2-frames.example.com", "h2-frames-keyed.example.com")
CLIENTS = {"h1": "--http1.1", "h2": "--http2"}


def hosts():
    return {(o, keyed): "%s-%s.example.com" % (o, "keyed" if keyed else "plain")
            for o in ("h1", "h2", "nginx") for keyed in (False, True)}


def answer(req, conn):
    """What nghttpd does: a file, an echo of what is uploaded, 404, trailers."""
    if req.method == "POST":
        conn.head(200, [("Transfer-Encoding", "chunked"), ("Trailer", "x-sum")])
        conn.chunk(req.body)
        conn.send(b"0\r\nx-sum: 42\r\n\r\n")
    elif req.path == "/small":
        conn.reply(req, 200, b"small\n", kind="text/plain")
    elif req.path == "/big":
        conn.reply(req, 200, b"b" * BIG, kind="application/octet-stream")
    else:
        conn.reply(req, 404, b"", kind="text/plain")


def curl(box, version, args):
    """-> (status and version, rest of the output)"""
    status, out, err = box.sh("curl -sS %s -w '\\n%%{http_version} %%{http_code} %%{size_download}' %s" % (
        CLIENTS[version], args))
    body, _, last = out.rpartition("\n")
    return last.split(), body, err


def pairing(t, box, client, server, host):
    name = "%s to %s" % (client, host)
    says = {"h1": "1.1", "h2": "2"}[client]
    got, body, err = curl(box, client, "https://%s/small" % host)
    t.eq((got[:2], body), ([says, "200"], "small\n"), name + ": GET") or t.diag(err)
    got, body, err = curl(box, client, "-I https://%s/small" % host)
    t.eq(got[:2], [says, "200"], name + ": HEAD") or t.diag(err)
    got, body, err = curl(box, client, "https://%s/absent" % host)
    t.eq(got[:2], [says, "404"], name + ": 404") or t.diag(err)
    got, body, err = curl(box, client, "-o /tmp/got https://%s/big" % host)
    t.eq(got, [says, "200", str(BIG)], name + ": 3 MiB down") or t.diag(err)
    if server == "nginx":
        return  # a file server
    for kind in ("--data-binary @/tmp/up", "-H 'Transfer-Encoding: chunked' --data-binary @/tmp/up",
                 "-H 'Expect: 100-continue' --data-binary @/tmp/up"):
        status, out, err = box.sh("head -c 300000 /dev/urandom >/tmp/up; curl -sS %s %s https://%s/up "
                                  "-o /tmp/echo -w '%%{http_code}' && cmp /tmp/up /tmp/echo" % (
                                      CLIENTS[client], kind, host))
        t.eq((status, out), (0, "200"), "%s: an upload and its echo, %s" % (name, kind.split("--")[0] or
                                                                     "counted")) or t.diag(err)


def trailers(t, gate, client, host):
    """Of a reply whose length is not known before: with one HTTP/1 has no place for them."""
    name = "%s to %s: trailers of the reply" % (client, host)
    if client == "h2":
        with h2.H2(gate, host) as c:
            stream = c.open(c.fields("/up", "POST", [("te", "trailers")]), end=False)
            c.frame(h2.DATA, h2.END_STREAM, stream, b"hello")
            a = c.answer(stream)
            t.eq((a.status, a.body, a.trailers), (200, b"hello", [("x-sum", "42")]), name)
        return
    with gate.tls(host) as st:
        r = st.ask("POST /up HTTP/1.1\r\nHost: %s\r\nTE: trailers\r\nConnection: TE\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" % host)
        t.eq((r.status, r.body, r.trailers.lower()), (200, b"hello", b"x-sum: 42\r\n"), name)


def unknown_length(peer):
    """nghttpd tells each length; this origin does not."""
    peer.send(h2_frames.frame(h2_frames.SETTINGS))
    while True:
        stream = peer.request()
        peer.send(h2_frames.head(stream) + h2_frames.frame(h2_frames.DATA, 0, stream, b"hello") +
                  h2_frames.frame(h2_frames.HEADERS, h2_frames.END_HEADERS | h2_frames.END_STREAM, stream,
                                  h2_frames.block(("x-sum", "42"))))


def nghttp(t, box, table):
    if not shutil.which("nghttp"):
        t.skip("nghttp", "nghttp2-client is not installed")
        return
    for (server, _), host in table.items():
        paths = " ".join("https://%s/small?%d" % (host, i) for i in range(20))
        _, out, err = box.sh("nghttp -ns " + paths)
        t.eq(len(re.findall(r" 200 +\S+ /small\?\d+", out)), 20, "nghttp to %s: 20 streams" % host) or \
            t.diag(out + err)


def main(t):
    h2.needed()
    s = scene.Scene(t)
    table, origins = hosts(), {}
    for (server, keyed), host in table.items():
        if server == "h1":
            o = s.add(host, origin.needs(s.openai_credential, answer) if keyed else answer)
        else:
            o = h2_frames.Nginx(t, s.d.ca, host) if server == "nginx" else h2_frames.Nghttpd(
                t, s.d.ca, host, "--echo-upload", "--trailer", "x-sum: 42")
            s.d.origin(host, o)
            for file, data in (("small", b"small\n"), ("big", b"b" * BIG)):
                with open(os.path.join(o.www, file), "wb") as f:
                    f.write(data)
        origins[server, keyed] = o
        s.rule(allow=host, **({"with": {"bearer": "openai"}} if keyed else {}))
    for host in FRAMES:
        s.d.origin(host, h2_frames.FrameOrigin(t, s.d.ca, host, unknown_length))
    s.rule(allow=FRAMES[0])
    s.rule(allow=FRAMES[1], **{"with": {"bearer": "openai"}})
    box = durward.Sandbox(s.d)
    for client in CLIENTS:
        for (server, keyed), host in table.items():
            t.part(pairing, t, box, client, server, host)
    nghttp(t, box, table)
    box.close()
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    for client in CLIENTS:
        for (server, keyed), host in table.items():
            if server == "h1":
                t.part(trailers, t, gate, client, host)
        for host in FRAMES:
            t.part(trailers, t, gate, client, host)
    right = "Bearer " + s.openai_secret.decode()
    for keyed in (False, True):
        text = origins["h2", keyed].text()
        n, all_ = text.count("authorization: " + right), text.count("authorization: ")
        asked = text.count(":method: ")
        t.eq((n, all_), (asked, asked) if keyed else (0, 0), "nghttpd: the credential, keyed %s" % keyed)
        seen = origins["nginx", keyed].records()
        t.ok(seen and all(x["auth"] == (right if keyed else "") and x["http"] == "HTTP/2.0" for x in seen),
             "nginx: the credential, over HTTP/2, keyed %s" % keyed, str(seen[:2])[:40])
        o = origins["h1", keyed]
        t.ok(o.requests and all(r.credentials() == ([("authorization", right)] if keyed else [])
                                and r.version == "HTTP/1.1" for r in o.requests),
             "HTTP/1.1: the credential, keyed %s" % keyed)
    s.clean()


tap.run(main, timeout=180)
