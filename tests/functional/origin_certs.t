#!/usr/bin/python3 -B
"""Origins' certificates, chain by chain: what the field has and RFC 5280 forgives is served, by a rule
with a credential and by one without; what it does not is 502 with no HTTP byte at the origin, also where
OpenSSL would let it pass. Beside each what OpenSSL's X509_V_FLAG_X509_STRICT says of it."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import ca, scene, shapes, tap  # noqa: E402

AUTHORITY = ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign", "subjectKeyIdentifier=hash",
             "authorityKeyIdentifier=keyid")
ROOT = AUTHORITY[:3]
MANY = 3600  # names in one certificate, some 60 KiB of it


def leaf_ext(host, *more, san=None):
    return ("basicConstraints=critical,CA:FALSE", "extendedKeyUsage=serverAuth",
            "subjectAltName=" + (san or "DNS:" + host), "subjectKeyIdentifier=hash", "authorityKeyIdentifier=keyid") + more


def without(ext, name):
    """The openssl program adds key ids of its own where it is not told not to."""
    more = (name + "=none",) if "KeyIdentifier" in name else ()
    return tuple(x for x in ext if not x.startswith(name)) + more


def swapped(ext, name, line):
    return tuple(line if x.startswith(name) else x for x in ext)


class Field:
    """Hosts and their chains. good: served; strict: whether X509_STRICT would take it; openssl: whether OpenSSL
    takes it without that flag."""

    def __init__(self, t):
        self.t, self.forge, self.rows, self.roots = t, ca.Forge(t.path("field")), [], []
        self.root = self.root_of("/CN=Field Root", ROOT)

    def root_of(self, subject, ext, **kw):
        made = self.forge.cert(subject, None, ext, **kw)
        self.roots.append(made)
        return made

    def leaf(self, host, issuer, ext=None, subject=None, **kw):
        return self.forge.cert(subject or "/CN=" + host[:60], issuer, leaf_ext(host) if ext is None else ext, **kw)

    def mid(self, name, ext=AUTHORITY, issuer=None, **kw):
        return self.forge.cert("/CN=" + name, issuer or self.root, ext, **kw)

    def row(self, what, host, good, strict, chain, root=None, openssl=None, option=()):
        self.rows.append((what, host, good, strict, chain, root or self.root, good if openssl is None else openssl, option))

    def under(self, what, host, good, strict, ext, openssl=None, leaf=None, issuer=None):
        """Beneath an intermediate of these extensions."""
        mid = self.mid("mid of " + host, ext, issuer)
        self.row(what, host, good, strict, self.forge.chain(self.leaf(host, mid, leaf), mid), openssl=openssl)


def quirks(f):
    """Legitimate chains, as clients meet them."""
    one = f.root
    f.row("nothing is odd", "plain.field.example", True, True, f.leaf("plain.field.example", one))
    f.under("an intermediate", "mid.field.example", True, True, AUTHORITY)
    f.row("a leaf without an authority key id", "no-aki.field.example", True, False,
          f.leaf("no-aki.field.example", one, without(leaf_ext("no-aki.field.example"), "authorityKeyIdentifier")))
    f.row("a leaf without a subject key id", "no-ski.field.example", True, True,
          f.leaf("no-ski.field.example", one, without(leaf_ext("no-ski.field.example"), "subjectKeyIdentifier")))
    f.row("serial zero", "zero.field.example", True, True, f.leaf("zero.field.example", one, serial=0))
    f.row("a leaf without basicConstraints", "no-bc.field.example", True, True,
          f.leaf("no-bc.field.example", one, without(leaf_ext("no-bc.field.example"), "basic")))
    f.row("a leaf without extendedKeyUsage", "no-eku.field.example", True, True,
          f.leaf("no-eku.field.example", one, without(leaf_ext("no-eku.field.example"), "extended")))
    f.row("a leaf without a subject, its names not critical", "no-subject.field.example", True, False,
          f.leaf("no-subject.field.example", one, subject="/"))
    f.under("an intermediate whose basicConstraints are not critical", "bc.field.example", True, False,
            swapped(AUTHORITY, "basic", "basicConstraints=CA:TRUE"))
    f.under("an intermediate without keyUsage", "ku.field.example", True, False, without(AUTHORITY, "keyUsage"))
    f.under("an intermediate without a subject key id", "mid-ski.field.example", True, False,
            without(AUTHORITY, "subjectKeyIdentifier"), leaf=without(leaf_ext("mid-ski.field.example"), "authorityKeyIdentifier"))
    for what, host, ext, strict in (
            ("a root of version 1", "v1.field.example", (), False),
            ("a root with basicConstraints alone, not critical", "old.field.example", ("basicConstraints=CA:TRUE",), False),
            ("a root of serial zero", "root-zero.field.example", ROOT, True)):
        root = f.root_of("/CN=root of " + host, ext, **({"serial": 0} if strict else {}))
        ids = without(leaf_ext(host), "authorityKeyIdentifier") if not strict else None
        f.row(what, host, True, strict, f.leaf(host, root, ids), root=root)
    host = "wide.field.example"
    f.row("a wildcard for one label", host, True, True, f.leaf(host, one, leaf_ext(host, san="DNS:*.field.example")))
    f.under("a name within what its issuer is constrained to", "in.permitted.example", True, True,
            AUTHORITY + ("nameConstraints=critical,permitted;DNS:permitted.example",))
    host = "open.excluded.example"
    f.under("a wildcard of which another name is excluded", host, True, True,
            AUTHORITY + ("nameConstraints=critical,excluded;DNS:secret.excluded.example",),
            leaf=leaf_ext(host, san="DNS:*.excluded.example"))
    host = "many.field.example"
    san = ",".join(["DNS:" + host] + ["DNS:%04d.field.example" % i for i in range(MANY)])
    own = f.forge.cert("/CN=" + host, None, leaf_ext(host, san=san))
    f.roots.append(own)
    f.row("a certificate of %d names, signed by itself and named in upstream.ca" % (MANY + 1), host, True, True, own, root=own)
    f.large = own[0]


def anchors(f):
    """What was named in upstream.ca ends the chain, whoever issued it."""
    hidden = f.forge.cert("/CN=Hidden Root", None, ROOT)
    mid = f.mid("named intermediate", issuer=hidden)
    f.roots.append(mid)
    host = "anchored.field.example"
    f.row("an intermediate as anchor", host, True, True, f.leaf(host, mid), root=mid, option=("-partial_chain",))
    host = "anchored-whole.field.example"
    f.row("the same, where the origin shows it too", host, True, True, f.forge.chain(f.leaf(host, mid), mid), root=mid,
          option=("-partial_chain",))
    own = f.forge.cert("/CN=Crossed Root", None, ROOT)
    crossed = f.forge.cert("/CN=Crossed Root", hidden, AUTHORITY, same_key=own)
    f.roots.append(crossed)
    host = "crossed.field.example"
    f.row("a root's cross-signed twin as anchor", host, True, True, f.leaf(host, crossed), root=crossed, option=("-partial_chain",))
    host = "sibling.field.example"
    f.row("a sibling of the anchor is none", host, False, False, f.leaf(host, f.mid("sibling", issuer=hidden)), root=mid,
          option=("-partial_chain",))
    host = "above.field.example"
    f.row("its issuer is none", host, False, False, f.forge.chain(f.leaf(host, hidden), hidden), root=mid,
          option=("-partial_chain",))


def wildcards(f):
    for what, host, san, more in (
            ("a wildcard across labels", "a.b.field.example", "DNS:*.field.example", {}),
            ("a wildcard for the name above it", "field.example", "DNS:*.field.example", {}),
            ("a partial wildcard in front", "partial.field.example", "DNS:par*.field.example", {"openssl": True}),
            ("a partial wildcard behind", "tail.field.example", "DNS:*il.field.example", {"openssl": True}),
            ("a wildcard in the second label", "x.y.field.example", "DNS:x.*.field.example", {}),
            ("two wildcards", "p.q.field.example", "DNS:*.*.example", {}),
            ("a wildcard for everything beneath one label", "suffix.example", "DNS:*.example", {}),
            ("a wildcard alone", "lone.field.example", "DNS:*", {}),
            ("a name with a zero byte's look-alike", "dot.field.example", "DNS:dot.field.example.evil.test", {}),
            ("only an address", "address.field.example", "IP:127.0.0.1", {}),
            ("only a mail address", "mail.field.example", "email:mail.field.example@field.example", {})):
        f.row(what, host, False, False, f.leaf(host, f.root, leaf_ext(host, san=san), subject="/O=field"), **more)
    host = "cn.field.example"
    f.row("a common name and no other", host, False, False, f.leaf(host, f.root, without(leaf_ext(host), "subjectAlt")),
          openssl=True)
    for what, host, san in (("an address by a wildcard", "203.0.113.7", "DNS:*.0.113.7"),
                            ("an address as a DNS name", "203.0.113.8", "DNS:203.0.113.8"),
                            ("another address", "203.0.113.9", "IP:203.0.113.10")):
        f.row(what, host, False, False, f.leaf(host, f.root, leaf_ext(host, san=san)))
    host = "203.0.113.11"
    f.row("an address as such", host, True, True, f.leaf(host, f.root, leaf_ext(host, san="IP:" + host)))


def faults(f):
    """Chains that are none."""
    end = ("basicConstraints=critical,CA:FALSE", "subjectKeyIdentifier=hash", "authorityKeyIdentifier=keyid")
    f.under("issued by what is no authority", "end.field.example", False, False, end)
    f.under("issued by a server's certificate without basicConstraints", "server.field.example", False, False,
            ("extendedKeyUsage=serverAuth", "subjectKeyIdentifier=hash", "authorityKeyIdentifier=keyid"))
    f.under("issued by one that may not sign", "sign.field.example", False, False,
            swapped(AUTHORITY, "keyUsage", "keyUsage=critical,digitalSignature"))
    f.under("issued by an authority by keyUsage alone", "ku-alone.field.example", False, False, without(AUTHORITY, "basic"))
    f.under("issued by an authority by Netscape's word", "netscape.field.example", False, False,
            ("nsCertType=sslCA", "subjectKeyIdentifier=hash", "authorityKeyIdentifier=keyid"))
    f.under("an intermediate of version 1", "mid-v1.field.example", False, False, (),
            leaf=without(leaf_ext("mid-v1.field.example"), "authorityKeyIdentifier"))
    f.under("an intermediate for clients", "client-ca.field.example", False, False, AUTHORITY + ("extendedKeyUsage=clientAuth",))
    f.row("a client's certificate", "client.field.example", False, False, f.leaf(
        "client.field.example", f.root, swapped(leaf_ext("client.field.example"), "extended", "extendedKeyUsage=clientAuth")))
    f.under("an extension that must be understood and is not", "critical.field.example", False, False,
            AUTHORITY, leaf=leaf_ext("critical.field.example", "1.2.3.4.5=critical,DER:0500"))
    short = f.mid("short", swapped(AUTHORITY, "basic", "basicConstraints=critical,CA:TRUE,pathlen:0"))
    below, host = f.mid("below", issuer=short), "long.field.example"
    f.row("a path that is too long", host, False, False, f.forge.chain(f.leaf(host, below), below, short))
    f.under("a name beside what its issuer is constrained to", "out.other.example", False, False,
            AUTHORITY + ("nameConstraints=critical,permitted;DNS:permitted.example",))
    f.under("a name that is excluded", "in.closed.example", False, False,
            AUTHORITY + ("nameConstraints=critical,excluded;DNS:closed.example",))
    host = "secret.excluded.example"
    f.under("an excluded name by a wildcard", host, False, False,
            AUTHORITY + ("nameConstraints=critical,excluded;DNS:secret.excluded.example",),
            leaf=leaf_ext(host, san="DNS:*.excluded.example"), openssl=True)
    f.under("an excluded address", "203.0.113.12", False, False,
            AUTHORITY + ("nameConstraints=critical,excluded;IP:203.0.113.0/255.255.255.0",),
            leaf=leaf_ext("", san="IP:203.0.113.12"))
    host = "beneath.permitted.example"
    f.under("a wildcard wider than what its issuer is constrained to", host, False, False,
            AUTHORITY + ("nameConstraints=critical,permitted;DNS:beneath.permitted.example",),
            leaf=leaf_ext(host, san="DNS:*.permitted.example"))


def measured(t, f):
    """What OpenSSL says, so that the table of doc/origin-certificates.md is one that somebody saw."""
    refused = []
    for what, host, good, strict, chain, root, openssl, option in f.rows:
        if host[0].isdigit():
            continue
        plain, why = ca.verifies(root, chain, host, *option)
        t.eq(plain, openssl, "OpenSSL %s: %s" % ("verifies" if openssl else "refuses", what)) or t.diag(why)
        hard, why = ca.verifies(root, chain, host, "-x509_strict", *option)
        if good:
            t.eq(hard, strict, "X509_STRICT %s: %s" % ("verifies" if strict else "refuses", what)) or t.diag(why)
            refused += [] if hard else [what]
    t.diag("X509_STRICT refuses %d of %d good chains: %s" % (len(refused), sum(r[2] for r in f.rows), "; ".join(refused)))


def judged(t, s, gate, f, made):
    for (what, host, good, *_), origins in zip(f.rows, made):
        for o, port, kind in origins:
            r = gate.get(host, "/x", port=port)
            if good:
                t.eq(r.status, 200, "%s, %s: served" % (what, kind)) or t.diag(str(s.d.kinds("aborted")[-1:]))
            else:
                t.eq((r.status, r.code, o.bytes_in), (502, "upstream_tls", 0),
                     "%s, %s: 502, and no HTTP byte" % (what, kind))


def set_up(s, f):
    made = []
    for _, host, _, _, chain, *_ in f.rows:
        origins = []
        for port, kind, more in ((443, "without a credential", {}), (8443, "with one", {"with": {"bearer": "openai"}})):
            o = s.add(host, shapes.echo, cert=chain)
            s.d.resolve["%s:%d" % (host, port)] = s.d.resolve.pop(host)
            s.rule(allow="https://%s:%d/**" % (host, port), **more)
            origins.append((o, port, kind))
        made.append(origins)
    return made


def bound(t, s):
    """Beyond what is read, the reason is the size."""
    path = t.write("huge.pem", "-----BEGIN CERTIFICATE-----\n" + "A" * ((1 << 20) + 1) + "\n-----END CERTIFICATE-----\n")
    s.d.extra["upstream"] = {"ca": [path], "resolve": s.d.resolve}
    r = s.d.check()
    t.ok("huge.pem: a certificate in it is larger than 1048576 bytes" in r.stdout + r.stderr,
         "a certificate beyond the bound: check names file and bound", r.stdout, r.stderr)


def main(t):
    s = scene.Scene(t)
    f = Field(t)
    for part in (quirks, anchors, wildcards, faults):
        part(f)
    made = set_up(s, f)
    s.d.extra["upstream"] = {"ca": [s.d.ca.pem] + [r[0] for r in f.roots], "resolve": s.d.resolve}
    address = s.listener()
    s.d.serve()
    t.part(measured, t, f)
    t.ok(os.path.getsize(f.large) > 60 << 10, "a certificate of %d bytes of PEM is among them" % os.path.getsize(f.large))
    t.part(judged, t, s, s.gate(address), f, made)
    s.clean((), "origins' certificates")
    t.eq(s.d.stop(), 0, "the daemon ends well")
    t.part(bound, t, s)


tap.run(main, timeout=120)
