"""D. Network: what of it can be driven through an explicit listener. Sockets, packets and names inside
a sandbox are in tests/functional/inside.t and tests/adversary/escape.t."""
from .bed import PLAIN
from .case import Case, Row, Sweep
from .send import connect, forward, get

BLOCKED = ("127.0.0.1", "127.1.2.3", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1",
           "172.31.255.254", "192.168.0.1", "169.254.169.254", "169.254.0.1", "100.64.0.1",
           "100.100.100.200", "168.63.129.16", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.19.255.1",
           "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
           "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1",
           "2001:db8::1", "fec0::1", "100::1")
TRANSLATED = ("::ffff:169.254.169.254", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1",
              "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1",
              "2002:7f00:1::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "::ffff:0:169.254.169.254")


def name(i, address):
    return "n%d-%d.rebind.example.com" % (i, len(address))


def known(bed):
    """Names that a rule allows and that resolve to such addresses."""
    for i, a in enumerate(BLOCKED + TRANSLATED):
        bed.names.known[name(i, a)] = [a]
    bed.names.known["mixed.rebind.example.com"] = ["10.0.0.1", "169.254.169.254", "::1", "fe80::1"]


def blocked(bed, out, records):
    kinds = [(r["kind"], r.get("code")) for r in records]
    if (out.status, out.code) != (403, "blocked_ip") or kinds != [("admitted", "ok"),
                                                                  ("aborted", "blocked_ip")]:
        return "%r %s" % (out, kinds)
    return None


def cases(addresses, first):
    return [(a, get(host=name(first + i, a)), blocked) for i, a in enumerate(addresses)]


ROWS = [
    Row("D3", "no name is asked for before a decision",
        *[Case(h, connect(h + ":443"), 403, "no_rule")
          for h in ("denied.example.net", "c2VjcmV0.exfil.example.net", "www." + PLAIN,
                    "rebind.example.com", "a.rebind.example.com.example.net")],
        Case("a path of no rule", get("/x", host="paths.example.com"), 403, "no_rule"),
        Case("a port of no rule", connect("x.rebind.example.com:8443"), 403, "no_rule"),
        Case("in clear", forward("GET http://denied.example.net/ HTTP/1.1\r\n"
                                 "Host: denied.example.net\r\n\r\n"), 403, "no_rule")),
    Row("D5", "a name that resolves elsewhere today",
        Case("to four addresses, none of them fit", get(host="mixed.rebind.example.com"), blocked,
             event="aborted")),
    Row("D6", "an allowed name at a private, local, metadata or reserved address",
        Sweep("each", cases(BLOCKED, 0), event="aborted")),
    Row("D7", "IPv4 inside IPv6", Sweep("each", cases(TRANSLATED, len(BLOCKED)), event="aborted")),
    Row("D9", "our own listener as a target",
        Case("by address", lambda bed: connect(bed.address)(bed), 403, "no_rule")),
]
