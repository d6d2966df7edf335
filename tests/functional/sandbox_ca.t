#!/usr/bin/python3 -B
"""A CA for each local sandbox: what one signs no other sandbox and nobody outside trusts, by real
clients; the same CA after the signer's death and a stop, another one in a fork, none left behind.
Beside it the exported CA: what its listener's policy names, for hours, also right after a reload."""
import os
import signal
import ssl
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, client, scene, shapes, tap  # noqa: E402

ROOT = "/etc/durward/durward-ca.pem"
BOX = "/v1/sandboxes"
LATE = ["late%d.example.com" % i for i in range(10)]
# the names have one root, so curl is told of no other: what it says is about the root alone
CURL = "curl -sS -o /dev/null --capath /nowhere --cacert %s https://%s/ 2>&1; echo $?"
PYTHON = """
import socket, ssl, sys
c = ssl.create_default_context(cafile=sys.argv[1])
try:
    with c.wrap_socket(socket.create_connection((sys.argv[2], 443), 10), server_hostname=sys.argv[2]):
        print("trusted")
except ssl.SSLCertVerificationError as e:
    print("refused:", e.verify_message)
"""
LIFE = """
import datetime, ssl, subprocess, sys
pem = ssl.get_server_certificate((sys.argv[1], 443), timeout=10)
end = subprocess.run(["openssl", "x509", "-noout", "-enddate"], input=pem, text=True, check=True, stdout=subprocess.PIPE)
print(int(ssl.cert_time_to_seconds(end.stdout.strip().partition("=")[2]) - datetime.datetime.now().timestamp()))
"""


class Box:
    def __init__(self, t, a, sid):
        self.t, self.a, self.sid = t, a, sid

    def sh(self, command):
        return self.a.sh(self.sid, command)[1].decode().strip()

    def py(self, script, *args):
        return self.sh("python3 - %s <<'END' 2>&1\n%s\nEND" % (" ".join(args), script))

    def root(self):
        return self.a.read(self.sid, ROOT)

    def sees(self, root, host, good, what):
        """curl and python, which trust this root alone, reach the host or refuse its certificate."""
        self.a.write(self.sid, "/tmp/root.pem", root)
        got = (self.sh(CURL % ("/tmp/root.pem", host)).splitlines()[-1:],
               self.py(PYTHON, "/tmp/root.pem", host).partition(":")[0])
        self.t.eq(got, (["0" if good else "60"], "trusted" if good else "refused"),
                  "curl and python: " + what)

    def served(self, host, what):
        """With all that a sandbox trusts as it is."""
        r = self.sh("curl -sS -o /dev/null -w '%%{http_code}' https://%s/" % host)
        self.t.eq((r, self.py(PYTHON, "/etc/ssl/certs/ca-certificates.crt", host)), ("200", "trusted"),
                  "served: " + what)


def issued(pem):
    r = subprocess.run(["openssl", "x509", "-noout", "-subject"], input=pem, stdout=subprocess.PIPE)
    return r.stdout.decode().strip()


def kill(d, role):
    pid = [pid for pid, r in d.roles() if r == role][0]
    os.kill(pid, signal.SIGKILL)
    tap.wait_for(lambda: [p for p, r in d.roles() if r == role] not in ([], [pid]), 10)


def apart(t, a, b, exported):
    first, second = a.root(), b.root()
    t.ok(first != second and first.count(b"BEGIN") == 1 == second.count(b"BEGIN"), "each sandbox has a root of its own")
    t.ok(exported not in (first, second) and len({issued(x) for x in (first, second, exported)}) == 3,
         "which is not the exported one", issued(first), issued(second), issued(exported))
    host = scene.PLAIN
    a.sees(first, host, True, "its own root, in its own sandbox")
    a.sees(second, host, False, "the other sandbox's root")
    b.sees(first, host, False, "and the other way round")
    a.sees(exported, host, False, "the exported root, in a sandbox")
    for box, name in ((a, "one"), (b, "the other")):
        box.served(host, name)
        n = box.sh("cat /etc/ssl/certs/ca-certificates.crt | grep -c BEGIN; ls /etc/durward/certs | wc -l")
        bundle, hashed = (n.split() + ["", ""])[:2]
        with open("/etc/ssl/certs/ca-certificates.crt") as f:
            host_has = f.read().count("BEGIN")
        t.eq((int(bundle or 0), hashed), (host_has + 1, "2"), "the system's roots and one more: " + name)
        life = int(box.py(LIFE, host) or 0)
        t.ok(23 * 3600 < life <= 24 * 3600, "a leaf lives for a day: " + name, str(life))
    r = a.sh("for f in %s /etc/durward/certs/* /etc/durward/cacerts.p12 /etc/durward/new; do (echo x >$f) 2>/dev/null && "
             "echo wrote $f; done; echo end" % ROOT)
    t.eq(r, "end", "nobody inside writes to the bundles")


def dies(t, d, a, hosts):
    """A host that was never asked for before needs the signer."""
    before = a.root()
    for i, role in enumerate(("signer", "gate", "controller")):
        if role == "gate":
            pids = [c["pid"] for c in a.a.ask("GET", "/v1/status")["roles"] if c["role"] == "gate" and c["sandbox"] == a.sid]
            os.kill(pids[0], signal.SIGKILL)
        else:
            kill(d, role)
        if role == "controller":
            a.a.close()
            tap.wait_for(d.answers, 10)
            tap.wait_for(lambda: a.a.show(a.sid)["state"] == "running", 10)
        a.served(hosts[i], "a new name after the %s was killed" % role)
        a.sees(before, hosts[i], True, "by the same CA, after the %s was killed" % role)


def copies(t, c, a):
    mine = a.root()
    c.ask("POST", "/v1/snapshots", {"sandbox": a.sid, "name": "base"})
    fork = Box(t, c, c.ask("POST", "%s/%s/fork" % (BOX, a.sid), {})["id"])
    made = Box(t, c, c.create(snapshot="base", policy="coder")["id"])
    roots = [mine, fork.root(), made.root()]
    t.eq(len(set(roots)), 3, "a fork, and a sandbox of a snapshot, have CAs of their own")
    for box, what in ((fork, "the fork"), (made, "the sandbox of a snapshot")):
        box.served(scene.PLAIN, what)
        box.sees(mine, scene.PLAIN, False, what + " and the root of its origin")
    c.ask("POST", "%s/%s/restore" % (BOX, a.sid), {"snapshot": "base"})
    a.served(scene.PLAIN, "a restored one")
    c.ask("POST", "%s/%s/stop" % (BOX, a.sid))
    c.ask("POST", "%s/%s/resume" % (BOX, a.sid))
    a.served(scene.PLAIN, "one that was stopped")
    a.sees(mine, scene.PLAIN, True, "by the CA that it had")
    for box in (fork, made):
        c.delete(box.sid)


def listener(t, s, address):
    """The exported CA; a reload's names count at once, at the gate and at the signer."""
    gate = client.Gate(address, s.ca_file())
    t.eq(gate.get(scene.PLAIN, "/").status, 200, "a client of a listener trusts the exported CA")
    with gate.tls(scene.PLAIN) as st:
        life = ssl.cert_time_to_seconds(st.sock.getpeercert()["notAfter"]) - ssl.cert_time_to_seconds(
            subprocess.run(["date", "-u", "+%b %e %T %Y GMT"], stdout=subprocess.PIPE, text=True).stdout.strip())
    t.ok(23 * 3600 < life <= 24 * 3600, "its leaf lives for a day", str(life))
    bad = []
    for host in LATE:
        s.rule(allow=host)
        s.d.save()
        r = s.d.command("reload", "--socket", s.d.socket)
        if r.returncode == 0 and gate.get(scene.PLAIN, "/").status == 200:
            reply, st = gate.connect(host + ":443")
            try:
                if reply.status != 200:
                    raise client.Ended(str(reply.status))
                gate.wrap(st, ssl.create_default_context(cafile=gate.cafile), host)
            except (ssl.SSLError, client.Ended) as e:
                bad.append((host, str(e)))
            st.close()
        else:
            bad.append((host, r.stderr))
    t.eq(bad, [], "a name that a reload brought is certified at once, ten times")


def run(t, s, exported):
    r = s.d.run(["sh", "-c", "cat %s; %s" % (ROOT, CURL % (ROOT, scene.PLAIN))], flags=("--policy", "coder", "--no-bind"), save=False)
    out = r.stdout if isinstance(r.stdout, str) else r.stdout.decode()
    t.ok(out.rstrip().endswith("\n0") and exported.decode() not in out and "BEGIN" in out,
         "durward run: a CA of its own", out, str(r.stderr))


def main(t):
    s = scene.Scene(t)
    hosts = ["new%d.example.com" % i for i in range(3)]
    for h in hosts + LATE:
        s.add(h, shapes.echo)
    for h in hosts:
        s.rule(allow=h)
    address = s.listener("coder")
    s.d.save()
    with open(s.ca_file(), "rb") as f:
        exported = f.read()
    t.part(run, t, s, exported)
    s.d.serve()
    c = api.Api(s.d.socket)
    a, b = (Box(t, c, c.create(policy="coder")["id"]) for _ in range(2))
    t.part(apart, t, a, b, exported)
    t.part(dies, t, s.d, a, hosts)
    t.part(copies, t, c, a)
    t.part(listener, t, s, address)
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=180)
