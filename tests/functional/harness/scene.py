"""The usual scene: a policy `coder` with GitHub and OpenAI credentials, an uncredentialed origin,
and the origins for them on loopback."""
import os
import socket

from . import scan, shapes
from .durward import Durward
from .nginx import free_port
from .origin import Origin, needs, one_right  # noqa: F401

GITHUB, OPENAI, PLAIN = "api.github.com", "api.openai.com", "deps.example.com"


class Scene:
    """origins: github, openai (401 unless exactly the one right credential), plain (echo)."""

    def __init__(self, test, delay=0.0, owner=None, name="d"):
        self.test = test
        self.d = Durward(test, name, owner=owner)
        self.github_secret = scan.canary("ghp_")
        self.openai_secret = scan.canary("sk-proj-")
        self.scanner = scan.Scanner(github=self.github_secret, openai=self.openai_secret)
        self.d.secret("github", self.github_secret, kind="github-pat")
        self.d.secret("openai", self.openai_secret + b"\n")
        self.github_credential = ("Authorization", "Bearer " + self.github_secret.decode())
        self.openai_credential = ("Authorization", "Bearer " + self.openai_secret.decode())
        self.github = self.add(GITHUB, needs(self.github_credential, shapes.github()))
        self.openai = self.add(OPENAI, needs(self.openai_credential, shapes.openai(delay)))
        self.plain = self.add(PLAIN, shapes.echo)
        self.rules = [
            {"allow": "api.github.com/user", "with": {"bearer": "github"}},
            {"allow": "api.github.com/repos/acme/**", "with": {"bearer": "github"}},
            {"deny": "api.github.com/repos/acme/secret/**"},
            {"deny": "api.github.com/gists/**"},
            {"allow": "api.openai.com/v1/**", "with": {"bearer": "openai"}},
            {"allow": PLAIN},
        ]
        self.env = {"GITHUB_TOKEN": "{{placeholder github}}",
                    "OPENAI_API_KEY": "{{placeholder openai}}"}
        self.d.policy("coder", self.rules, self.env)

    def add(self, host, handler=None, **kw):
        """An origin for a name; the rule for it is the caller's."""
        o = Origin(self.test, self.d.ca, host, handler, **kw)
        self.d.origin(host, o)
        return o

    def rule(self, **rule):
        self.rules.append(rule)

    def listener(self, policy="coder", **more):
        """An explicit loopback listener bound to the policy; -> its address."""
        address = "127.0.0.1:%d" % free_port()
        entry = dict({"http": address}, **more)
        if policy:
            entry["policy"] = policy
        self.d.listen.append(entry)
        return address

    def gate(self, address, **kw):
        from .client import Gate
        return Gate(address, self.ca_file(), **kw)

    def ca_file(self):
        """The certificate that clients of a listener trust, from `ca export`."""
        path = os.path.join(self.d.dir, "durward-ca.pem")
        r = self.d.command("ca", "export", "-c", self.d.conf)
        if r.returncode != 0 or "BEGIN CERTIFICATE" not in r.stdout:
            raise RuntimeError("ca export: %s %s" % (r.stdout, r.stderr))
        with open(path, "w") as f:
            f.write(r.stdout)
        return path

    # ---- what every client test ends with ----

    def judge(self, pairs, outputs=(), what="clients", binds=(), exact=True):
        """Right credentials only, ids equal, nothing leaked into output, logs or folders.
        pairs: [(origin, credential or None)]"""
        t = self.test
        for o, credential in pairs:
            if credential is not None:
                wrong = one_right(o, credential)
                t.ok(o.requests and not wrong, "%s: %s saw exactly one right credential in each of "
                     "its %d requests" % (what, o.names[0], len(o.requests)), *wrong[:5])
        self.d.check_pairs(t, [o for o, _ in pairs], what, exact=exact)
        self.clean(outputs, what, binds)

    def clean(self, outputs=(), what="clients", folders=()):
        t, before, size = self.test, len(self.scanner.hits), self.scanner.bytes
        for i, text in enumerate(outputs):
            self.scanner.search(text, "client output %d" % i)
        self.scanner.tree(self.d.audit_dir)
        self.scanner.tree(self.d.work)
        for f in folders:
            self.scanner.tree(f)
        for path in (self.d.log, os.path.join(self.d.dir, "sandbox.err")):
            if os.path.exists(path):
                self.scanner.file(path)
        hits = self.scanner.hits[before:]
        t.tally(canaries=len(hits), searched=self.scanner.bytes - size)
        t.ok(not hits, "%s: 0 copies of a secret in output, logs and files" % what,
             *["%s as %s in %s" % h for h in hits])


def reachable(address):
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
        return True
    except OSError:
        return False
