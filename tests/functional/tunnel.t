#!/usr/bin/python3 -B
"""A tunnel rule: the client's TLS reaches the origin as it is, by CONNECT, SOCKS and inside a sandbox;
the name must agree as ever; bytes are counted; other hosts of the policy are not touched by it."""
import os
import socket
import ssl
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import scene, socks, tap  # noqa: E402

RAW, PLAIN = "raw.example.com", scene.PLAIN


def answer(req, conn):
    conn.reply(req, 200, b"y" * 100000)


def ask(st, host, path="/"):
    return st.ask("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (path, host))


def refused(gate, t, what, error, words, **kw):
    """The handshake fails, with this error and no other."""
    try:
        gate.tls(RAW, **kw).close()
        t.ok(False, what, "the handshake was done")
    except error as e:
        t.has(str(e).lower().replace("_", " "), words, what)


def slow_hello(t, s, gate, origin_tls):
    """The ClientHello a byte at a time, then cut short."""
    r, st = gate.connect(RAW + ":443")
    inner, outer = ssl.MemoryBIO(), ssl.MemoryBIO()
    o = origin_tls.wrap_bio(inner, outer, server_hostname=RAW)
    try:
        o.do_handshake()
    except ssl.SSLWantReadError:
        pass
    hello = outer.read()
    for i in range(len(hello)):
        st.send(hello[i:i + 1])
    inner.write(st.sock.recv(65536))
    t.ok(r.status == 200 and inner.pending > 0, "a ClientHello byte by byte is answered by the origin")
    st.close()
    r, st = gate.connect(RAW + ":443")
    st.send(hello[:100])
    st.sock.shutdown(socket.SHUT_WR)
    t.ok(st.ended(), "one that is cut short goes nowhere")
    st.close()


def records(t, s, n):
    done = s.d.wait_records(n, "completed", 5.0)
    admitted = [r for r in s.d.kinds("admitted") if r.get("detail") == "tunnel"]
    t.ok(len(admitted) >= n and all(r.get("authority") == RAW and "tunnel" in r.get("rule", "")
                                    for r in admitted), "each is admitted as a tunnel",
         str(admitted[:2]))
    t.ok(all(r.get("down", r.get("bytes_down", 0)) > 100000 for r in done[:n]),
         "and completed with its bytes", str(done[:1]))


def main(t):
    s = scene.Scene(t)
    server = s.add(RAW, answer)
    s.rule(allow=RAW, tunnel=True)
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    origin_tls = ssl.create_default_context(cafile=s.d.ca.pem)
    with gate.tls(RAW, context=origin_tls) as st:
        r = ask(st, RAW, "/a")
        t.ok(r.status == 200 and len(r.body) == 100000 and server.requests[-1].path == "/a",
             "by CONNECT, with the origin's own certificate")
    with socks.Listener(address).tls(RAW, context=origin_tls) as st:
        t.eq(ask(st, RAW).status, 200, "by SOCKS")
    records(t, s, 2)
    refused(gate, t, "Durward's own certificate is never shown for it", ssl.SSLCertVerificationError,
            "unable to get local issuer certificate")
    seen = server.accepted
    refused(gate, t, "another name in the ClientHello", ssl.SSLError, "unrecognized name", context=origin_tls, sni="evil.example.com")
    t.eq(server.accepted, seen, "and it does not reach the origin")
    t.ok(s.d.wait_records(1, "denied", code="authority_mismatch"), "but is recorded")
    with gate.tls(PLAIN) as st:
        t.eq(ask(st, PLAIN).status, 200, "another host is decrypted as ever")
    slow_hello(t, s, gate, origin_tls)
    r = s.d.command("explain", "-c", s.d.conf, "GET", "https://%s/x" % RAW)
    t.ok(r.returncode == 0 and "tunnel" in r.stdout, "explain says so", r.stdout)
    t.eq(s.d.stop(), 0, "the daemon ends well")
    ends = s.d.kinds("completed") + s.d.kinds("aborted")
    ids = [r.get("request") or r.get("id") for r in s.d.kinds("admitted")]
    t.ok(len(ids) == len(set(ids)) and len(ends) == len(ids), "each has one end",
         "%d %d" % (len(ids), len(ends)))


tap.run(main)
