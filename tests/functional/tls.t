#!/usr/bin/python3 -B
"""TLS on both sides: an origin with a bad certificate gets no HTTP byte; what Durward shows to the
sandbox is verified by its CA, for the right name, in TLS 1.2 and 1.3, and nothing older."""
import os
import ssl
import sys
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import ca, client, scene, shapes, tap  # noqa: E402

BAD = {  # name: (options of the certificate, its names, a word of the reason)
    "expired": ({"expired": True}, None, "expired"),
    "not-yet": ({"not_yet": True}, None, "not yet"),
    "self-signed": ({"self_signed": True}, None, "self"),
    "wrong-name": ({}, ["else.example.com"], "name"),
    "cn-only": ({"cn_only": True}, None, "name"),
    "stranger": (None, None, ""),
}


def bad_origins(t, s):
    stranger = ca.Authority(t.path("stranger"), "Some Other CA")
    made = {}
    for kind, (options, names, _) in BAD.items():
        for prefix, more in (("", {}), ("keyed-", {"with": {"bearer": "openai"}})):
            host = "%s%s.example.com" % (prefix, kind)
            issuer = stranger if options is None else s.d.ca
            cert = issuer.issue(*(names or [host]), **(options or {}))
            made[host] = s.add(host, shapes.echo, cert=cert)
            s.rule(allow=host, **more)
    host = "old-tls.example.com"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made[host] = s.add(host, shapes.echo, min_version=ssl.TLSVersion.TLSv1_1,
                           max_version=ssl.TLSVersion.TLSv1_1)
    s.rule(allow=host, **{"with": {"bearer": "openai"}})
    return made


def upstream(t, s, gate, made):
    for host, o in made.items():
        r = gate.get(host, "/secret-path", "X-Data: payload\r\n")
        t.ok(r.status == 502 and r.code == "upstream_tls", host + " is 502 upstream_tls",
             "%d %r" % (r.status, r.body))
        t.eq((o.bytes_in, len(o.requests)), (0, 0), host + " got 0 HTTP bytes")
        ends = tap.wait_for(lambda: [x for x in s.d.kinds("completed") + s.d.kinds("aborted")
                                     if x["id"] == r.id], 3) or []
        kind = host.replace("keyed-", "").split(".")[0]
        word = BAD[kind][2] if kind in BAD else ""
        t.ok(len(ends) == 1 and ends[0].get("detail") and
             word in str(ends[0].get("detail")).lower(), host + ": the reason is in the audit",
             str(ends))


def downstream(t, gate, host="api.github.com"):
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        ctx = ssl.create_default_context(cafile=gate.cafile)
        ctx.minimum_version = ctx.maximum_version = version
        with gate.tls(host, context=ctx) as st:
            r = st.ask("GET /user HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
            t.eq((r.status, st.sock.version()), (200, version.name.replace("_", ".")),
                 "a client with %s only" % version.name)
    with gate.tls(host, alpn=["http/1.1"]) as st:
        t.eq(st.sock.selected_alpn_protocol(), "http/1.1", "ALPN http/1.1 is answered")
        cert = st.sock.getpeercert()
        t.eq(cert["subjectAltName"], (("DNS", host),), "the leaf is for that name alone")
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ctx.load_verify_locations(gate.cafile)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ctx.minimum_version = ctx.maximum_version = ssl.TLSVersion.TLSv1_1
        ctx.set_ciphers("ALL:@SECLEVEL=0")
    try:
        gate.tls(host, context=ctx).close()
        t.ok(False, "TLS 1.1 is refused")
    except (ssl.SSLError, client.Ended, ConnectionError) as e:
        t.ok(True, "TLS 1.1 is refused")
        t.diag(str(e))
    r, st = gate.connect(host + ":443")
    st.send(b"\x16\x03\x01\x00\x05hello" + b"\xff" * 200)
    t.ok(st.ended(12), "E17 garbage instead of a handshake ends the connection")
    st.close()
    r, st = gate.connect(host + ":443")
    got = st.send("GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % host).rest(2)
    t.ok(b" 200 " not in got, "clear text in a CONNECT to 443 is not served", repr(got[:60]))
    st.close()


def refused_leaf(t, s, gate):
    """A client that does not trust our CA (pinning): recorded, no way around."""
    try:
        gate.tls("api.github.com", context=ssl.create_default_context()).close()
    except ssl.SSLError:
        pass
    got = s.d.wait_records(1, "tls_refused")
    t.ok(got and "api.github.com" in str(got), "E6 a client that refuses the leaf is recorded",
         str(got))


def main(t):
    s = scene.Scene(t)
    made = bad_origins(t, s)
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    t.part(upstream, t, s, gate, made)
    t.part(downstream, t, gate)
    t.part(refused_leaf, t, s, gate)
    s.clean((), "tls")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
