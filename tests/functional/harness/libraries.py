"""Vendors' own client libraries as their documents begin, bare and inside of `durward run`, against doubles of the
vendors' APIs (apis.py has them)."""
import base64
import glob
import json
import os
import re
import shutil
import subprocess

from . import apis, bare, durward, origin, scan

AKIA = "AKIAEXAMPLE7REALKEY0"


def first(patterns):
    return next((p for pattern in patterns for p in glob.glob(pattern)), None)


class Library:
    """One that speaks an API, in a language."""

    def __init__(self, language, package, api):
        self.language, self.package, self.api = language, package, api
        self.name, self.hosts = "%s:%s" % (language, api.name), api.hosts

    def goes_by(self, names):
        """Is it one of these? By its API, its package, its language or all of it."""
        return bool({"all", self.name, self.api.name, self.package, self.language} & set(names))

    def folder(self):
        """The folder that has it, or None."""
        return getattr(self, "_" + self.language)()

    def _python(self):
        name = re.sub("[-_.]+", "_", self.package)
        for folder in (os.path.join(durward.clients_dir(), x) for x in ("sdks", "libraries/venv")):
            if first(os.path.join(folder, "lib/python3*/site-packages", n + "-*.dist-info") for n in (name, name.lower())):
                return os.path.realpath(folder)
        return None

    def _node(self):
        folder = os.path.join(durward.clients_dir(), "libraries")
        there = os.path.exists(os.path.join(folder, "node_modules", self.package, "package.json")) and shutil.which("node")
        return os.path.realpath(folder) if there else None

    def _go(self):
        folder = os.path.join(durward.clients_dir(), "libraries/go-bin")
        return os.path.realpath(folder) if os.path.exists(os.path.join(folder, "library")) else None

    def _java(self):
        folder = os.path.join(durward.clients_dir(), "libraries/java")
        there = os.path.exists(os.path.join(folder, "classes/Library.class")) and shutil.which("java")
        return os.path.realpath(folder) if there else None

    def bound(self):
        """What of its folder a sandbox needs."""
        return os.path.join(self.folder(), "node_modules") if self.language == "node" else self.folder()

    def argv(self, key, turns):
        rest = [self.api.name, self.package, str(turns), key]
        if self.language == "go":
            return [os.path.join(self.folder(), "library")] + rest
        if self.language == "java":
            path = ":".join(os.path.join(self.folder(), x) for x in ("classes", "jars/*"))
            return ["java", "-XX:TieredStopAtLevel=1", "-cp", path, "Library"] + rest
        if self.language == "node":
            return ["node", os.path.join(durward.INSIDE, "library.mjs"), self.folder()] + rest
        return [os.path.join(self.folder(), "bin", "python"), "-B", os.path.join(durward.INSIDE, "library.py")] + rest


LIBRARIES = tuple(Library(language, package, api) for api in apis.APIS for language, package in api.packages.items())


def by_policy(libraries):
    """Lists of them that one policy serves: no two APIs of a list want another credential at the same host."""
    groups = []
    for x in libraries:
        wants = {(host, json.dumps(x.api.rules())) for host in x.hosts}
        for group, taken in groups:
            if not any(host == h and want != w for host, want in wants for h, w in taken):
                group.append(x)
                taken |= wants
                break
        else:
            groups.append(([x], wants))
    return [group for group, _ in groups]


def decoded(value):
    """A field's value with its base64 undone."""
    scheme, _, rest = value.partition(" ")
    if scheme.lower() == "basic":
        try:
            return scheme + " " + base64.b64decode(rest, validate=True).decode()
        except ValueError:
            pass
    return value


def places(req, key):
    """Where the key stands in a request: names of fields with the scheme, `path`, `query`, `body`."""
    found = []
    for name, value in req.headers:
        if key in decoded(value):
            scheme = re.match(r"(\S+) ", value)
            found.append(name.lower() + (" (%s)" % scheme[1].split("-")[0] if scheme else ""))
    found += ["path"] if key in req.path else []
    found += ["query"] if key in req.query else []
    return tuple(sorted(found + (["body"] if key.encode() in req.body else [])))


class World:
    """Doubles of all hosts of some libraries, a bare place, and one sandbox whose policy has the rules of all of them:
    libraries of one API have its key together."""

    def __init__(self, t, libraries, name):
        self.t, self.d, self.scanner = t, durward.Durward(t, name), scan.Scanner()
        self.variables, self.keys, self.rules, self.env, self.outputs = {}, {}, [], {}, []
        self.now = None  # the API whose library runs: two may have a host together
        by_host = {}
        for x in libraries:
            for host in x.hosts:
                by_host.setdefault(host, {})[x.api.name] = x.api.handler()
            self._key(x)
        cert = self.d.ca.issue(*sorted(by_host))  # one for all: each costs three runs of openssl
        self.origins = {}
        for host, by_api in sorted(by_host.items()):
            self.origins[host] = origin.Origin(t, self.d.ca, host, self._double(by_api), cert=cert)
            self.d.origin(host, self.origins[host])
        self.d.policy("agents", self.rules, self.env)
        self.box = durward.Sandbox(self.d, binds=["%s:%s:ro" % (f, f) for f in sorted({x.bound() for x in libraries})])
        self.java = any(x.language == "java" for x in libraries) and self._java_trusts()
        self.given = [x for x in self.box.sh("env | sed -n 's/^KEY_[0-9]*=//p'")[1].split() if x not in self.keys.values()]

    def _double(self, by_api):
        return lambda req, conn: by_api[self.now](req, conn)

    def _key(self, x):
        """The key of its API, with the rules for it."""
        text = json.dumps(x.api.rules())
        if text not in self.variables:
            n = len(self.variables)
            value, name, self.variables[text] = scan.canary(x.api.prefix), "k%d" % n, "KEY_%d" % n
            self.keys[text] = AKIA if x.api.aws else value.decode()
            if x.api.rule is None:
                self.rules += x.api.rules()
                self.env["KEY_%d" % n] = self.keys[text]
                return
            self.scanner.add(name, value)
            self.d.secret(name, value, **({"kind": x.api.kind} if x.api.kind else {}))
            if x.api.aws:
                self.d.secret("id", AKIA)
                self.d.secrets["aws%d" % n] = {"aws_key": {"access_key_id": "id", "secret_access_key": name}}
                name = "aws%d" % n
            self.rules += json.loads(text.replace('"KEY"', json.dumps(name)))
            self.env["KEY_%d" % n] = "{{placeholder %s}}" % name

    def key(self, x):
        return self.keys[json.dumps(x.api.rules())]

    def _java_trusts(self):
        """A trust store of the doubles' authority, for the bare run of Java. -> the options that name it."""
        store = os.path.join(self.d.dir, "trust.p12")
        subprocess.run(["keytool", "-importcert", "-noprompt", "-alias", "doubles", "-file", self.d.ca.pem,
                        "-keystore", store, "-storetype", "PKCS12", "-storepass", "changeit"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return "-Djavax.net.ssl.trustStore=%s -Djavax.net.ssl.trustStorePassword=changeit" % store

    def trust(self):
        """What the bare run's programs know of the doubles' authority."""
        pem = self.d.ca.pem
        names = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
        java = {"JAVA_TOOL_OPTIONS": self.java} if self.java else {}
        return dict({n: pem for n in names}, LANG="C.UTF-8", PATH="/usr/local/bin:/usr/bin:/bin", **java)

    def count(self, hosts):
        return {h: len(self.origins[h].requests) for h in hosts}

    def bare(self, x, turns):
        """-> (what it printed, its requests, its errors)"""
        before, self.now = self.count(x.hosts), x.api.name
        b = bare.Bare(self.t, {h: self.origins[h] for h in x.hosts}, self.d.work, self.d.env["HOME"])
        said = b.run(x.argv(self.key(x), turns), self.trust(), timeout=300)
        return self.outcome(said.returncode, said.stdout, said.stderr, before)

    def inside(self, x, turns):
        before, self.now = self.count(x.hosts), x.api.name
        variable = self.variables[json.dumps(x.api.rules())]
        argv = " ".join('"$%s"' % variable if w == "KEY" else "'%s'" % w for w in x.argv("KEY", turns))
        status, out, err = self.box.sh(argv, timeout=300)
        self.outputs += [out, err]
        return self.outcome(status, out, err, before)

    def outcome(self, status, out, err, before):
        new = [r for h, n in before.items() for r in self.origins[h].requests[n:]]
        said = {}
        if status == 0:
            try:
                said = json.loads(out.strip().splitlines()[-1])
            except (ValueError, IndexError):
                err = "%s\n%s" % (out, err)
        return said, new, err

    def refused(self):
        return ["%s %s %s %s %s" % (r.get("authority"), r.get("method"), r.get("path"), r.get("code"), r.get("detail"))
                for r in self.d.kinds("denied")]

    def close(self):
        self.outputs.append(self.box.close()[1])
