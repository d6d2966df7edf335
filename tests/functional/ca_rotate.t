#!/usr/bin/python3 -B
"""`durward ca rotate`: real clients in sandboxes and at a listener before, in and after the overlap,
with the old CA alone, both, and the new one alone; the end of an overlap by time; SIGKILL in the
middle of it; what is left of the old key."""
import glob
import json
import os
import signal
import ssl
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, client, durward, scene, tap  # noqa: E402

BEGIN = "-----BEGIN CERTIFICATE-----"
ROUNDS = int(os.environ.get("CA_KILL_ROUNDS", "25"))


class Bed:
    def __init__(self, t):
        self.t, self.s = t, scene.Scene(t)
        self.d = self.s.d
        self.address = self.s.listener("coder")

    def rotate(self, *flags):
        return self.d.command("ca", "rotate", "-c", self.d.conf, "--socket", self.d.socket, *flags)

    def show(self):
        return json.loads(self.d.command("ca", "show", "--json", "-c", self.d.conf).stdout)

    def export(self):
        r = self.d.command("ca", "export", "-c", self.d.conf)
        return [BEGIN + x for x in r.stdout.split(BEGIN)[1:]]

    def serves(self, pem):
        """curl's view: a new connection through the listener, trusting only this."""
        path = self.t.write("trusted.pem", pem, 0o644)
        try:
            return client.Gate(self.address, path).get(scene.GITHUB, "/user").status == 200
        except ssl.SSLCertVerificationError:
            return False

    def served(self, a, box, what):
        r = str(a.sh(box, "curl -sS https://api.github.com/user && curl -sS --cacert "
                     "/etc/ssl/certs/ca-certificates.crt https://api.github.com/user"))
        self.t.eq(r.count("octo"), 2, "curl is served in a sandbox: " + what) or self.t.diag(r)


def key_of(path):
    with open(path, "rb") as f:
        return b"".join(f.read().splitlines()[1:-1])


def belongs(d):
    """Do key.pem and cert.pem belong together?"""
    key, cert = (subprocess.run(["openssl"] + args, stdout=subprocess.PIPE).stdout for args in (
        ["pkey", "-in", d.ca_dir + "/key.pem", "-pubout"],
        ["x509", "-in", d.ca_dir + "/cert.pem", "-noout", "-pubkey"]))
    return key == cert and b"PUBLIC" in key


def overlap(t, b, a, old, first):
    r = b.rotate("--overlap", "12h")
    t.eq(r.returncode, 0, "ca rotate begins an overlap") or t.diag(r.stderr)
    both, shown = b.export(), b.show()
    t.eq((len(both), both[:1]), (2, old), "ca export: the old one and the new one")
    t.ok(shown["next"]["signs_from"] == shown["signs_until"] and
         shown["next"]["subject"] != shown["subject"], "ca show tells both, with their times",
         str(shown))
    t.ok("signs until" in r.stdout and "trusted since" in r.stdout, "and so does ca rotate", r.stdout)
    r = b.d.command("ca", "export", "--der", "-c", b.d.conf)
    t.ok(r.returncode == 1 and "--pem" in r.stderr, "two do not fit into DER: said", r.stderr)
    r = b.rotate()
    t.ok(r.returncode == 1 and "--now" in r.stderr, "a second rotation is refused", r.stderr)
    t.eq((b.serves(both[0]), b.serves("".join(both)), b.serves(both[1])), (True, True, False),
         "the old one signs: clients with the old or both are served")
    second = a.create(policy="coder")["id"]
    for what, box in (("one that ran before", first), ("a new one", second)):
        has = a.read(box, "/etc/durward/durward-ca.pem").decode()
        t.ok(has.count(BEGIN) == 1 and has not in both, "a local sandbox has a CA of its own: " + what, has)
        b.served(a, box, what)
    told = a.ask("POST", "/v1/identities", {"policy": "coder"})
    t.eq(len(told["ca"].split(BEGIN)), 3, "a new identity is told both")
    names = {subprocess.run(["openssl", "x509", "-noout", "-subject_hash"], input=pem.encode(), stdout=subprocess.PIPE)
             .stdout.decode().strip() + ".0": pem.strip() for pem in both}
    t.eq({n: p.strip() for n, p in told["ca_hashed"].items()}, names, "each by the name that OpenSSL looks for")
    return both, second


def after(t, b, a, both, boxes, old_key):
    t.eq(b.rotate("--now").returncode, 0, "ca rotate --now ends the overlap")
    t.ok(tap.wait_for(lambda: b.serves(both[1]), 10, 0.1), "the new one signs")
    t.eq((b.export(), b.serves("".join(both)), b.serves(both[0])), (both[1:], True, False),
         "the old one is dropped: who has both is served, who has it alone is not")
    t.ok(belongs(b.d) and "next" not in b.show(), "the new key and certificate are in place")
    left = sorted(os.listdir(b.d.ca_dir))
    t.eq(left, ["cert.pem", "key.pem"], "nothing else is left beside them")
    t.ok(key_of(b.d.ca_dir + "/key.pem") != old_key, "the old key is gone")
    boxes.append(a.create(policy="coder")["id"])
    for i, box in enumerate(boxes):
        b.served(a, box, "after the rotation, sandbox %d of %d" % (i + 1, len(boxes)))


def by_time(t, b, a, boxes):
    """A second rotation, which ends by itself; the signer is killed in the middle."""
    old = b.export()
    t.eq(b.rotate("--overlap", "4s").returncode, 0, "an overlap of 4 s")
    both = b.export()
    for pid, role in b.d.roles():
        if role == "signer":
            os.kill(pid, signal.SIGKILL)
    t.ok(tap.wait_for(lambda: b.serves(old[0]), 5, 0.1), "the old one signs")
    t.ok(tap.wait_for(lambda: b.serves(both[1]), 12, 0.2), "at its end the new one does")
    t.ok(not b.serves(old[0]) and belongs(b.d), "and the old one no more")
    for i, box in enumerate(boxes):
        b.served(a, box, "after two rotations, sandbox %d" % (i + 1))


def killed(t, d):
    """Without a daemon: SIGKILL at any moment leaves a CA that works."""
    bad, cut = [], 0
    began = time.monotonic()
    d.command("ca", "rotate", "-c", d.conf, "--now")
    took = time.monotonic() - began
    for i in range(ROUNDS):
        p = subprocess.Popen([durward.program(), "ca", "rotate", "-c", d.conf, "--now"],
                             env=d.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            p.wait(took * 1.1 * i / ROUNDS)
        except subprocess.TimeoutExpired:
            p.kill()
            cut += 1
        p.wait()
        r = d.command("ca", "show", "-c", d.conf)
        if r.returncode != 0 or not belongs(d) or glob.glob(d.ca_dir + "/old-*"):
            bad.append((i, r.returncode, r.stderr, os.listdir(d.ca_dir)))
    t.ok(not bad, "%d rotations of which SIGKILL cut %d: key and certificate belong together, no old "
         "key lies about" % (ROUNDS, cut), *map(str, bad[:3]))


def refused(t, b):
    own = b.d.ca
    b.d.extra["ca"] = {"cert": own.pem, "key": own.key}
    b.d.save()
    r = b.rotate("--now")
    t.ok(r.returncode == 1 and "your own" in r.stderr and "restart" in r.stderr,
         "refused for the operator's own files, with what to do", r.stderr)


def main(t):
    b = Bed(t)
    b.d.serve()
    a = api.Api(b.d.socket)
    old, old_key = b.export(), key_of(b.d.ca_dir + "/key.pem")
    first = a.create(policy="coder")["id"]
    own = a.read(first, "/etc/durward/durward-ca.pem")
    b.served(a, first, "before any rotation")
    t.ok(b.serves(old[0]), "and at the listener")
    both, second = overlap(t, b, a, old, first)
    boxes = [first, second]
    after(t, b, a, both, boxes, old_key)
    by_time(t, b, a, boxes)
    t.eq(a.read(first, "/etc/durward/durward-ca.pem"), own, "a sandbox keeps its CA through all of it")
    for what, n in (("ca_rotating", 2), ("ca_replaced", 2)):
        t.eq(len(b.d.wait_records(n, "lifecycle", event=what)), n, "%s is recorded" % what)
    a.close()
    t.eq(b.d.stop(), 0, "the daemon ends well")
    killed(t, b.d)
    refused(t, b)


tap.run(main)
