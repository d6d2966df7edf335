"""Vendors' own client libraries as their documents begin, bare and inside of `durward run`, against doubles of the
vendors' APIs: which hosts each asks, by which rule, and how those answer it."""
import base64
import glob
import json
import os
import re

from . import answers, bare, durward, origin, scan

TEXT, fixed = answers.TEXT, answers.fixed
AKIA = "AKIAEXAMPLE7REALKEY0"


class Library:
    """rule: the name of a preset, or what `with` holds of KEY. hosts: those it asks. package: as its registry has it."""

    def __init__(self, name, rule, hosts, package=None, prefix="key-", kind=None):
        self.name, self.rule, self.hosts, self.package = name, rule, hosts, package or name
        self.prefix, self.kind = prefix, kind

    @property
    def aws(self):
        return isinstance(self.rule, dict) and "aws" in self.rule

    def rules(self):
        """What a policy says of it; KEY is the secret."""
        if isinstance(self.rule, str):
            return [{"use": self.rule, "secret": "KEY"}]
        return [{"allow": self.hosts, "with": self.rule}]

    def folder(self):
        """The environment that has it, or None."""
        folder = os.path.join(durward.clients_dir(), "sdks")
        name = re.sub("[-_.]+", "_", self.package)
        there = [p for n in (name, name.lower())
                 for p in glob.glob(os.path.join(folder, "lib/python3*/site-packages", n + "-*.dist-info"))]
        return folder if there else None

    def argv(self, key, turns):
        return [os.path.join(self.folder(), "bin", "python"), "-B", os.path.join(durward.INSIDE, "library.py"),
                self.name, str(turns), key]


LIBRARIES = (
    Library("openai", "openai", ["api.openai.com"]),
    Library("anthropic", "anthropic", ["api.anthropic.com"]),
    Library("genai", "gemini", ["generativelanguage.googleapis.com"], "google-genai"),
    Library("mistral", "mistral", ["api.mistral.ai"], "mistralai"),
    Library("cohere", "cohere", ["api.cohere.com"]),
    Library("huggingface", "huggingface", ["huggingface.co", "router.huggingface.co"], "huggingface_hub"),
    Library("boto3", {"aws": "KEY"}, ["acme.s3.eu-west-1.amazonaws.com", "dynamodb.eu-west-1.amazonaws.com"]),
    Library("github", "github", ["api.github.com"], "PyGithub", kind="github-pat", prefix="ghp_"),
    Library("gitlab", "gitlab", ["gitlab.com"], "python-gitlab"),
)


# ---- what the doubles say ----

def raw(body, kind, status=200):
    return lambda req, conn: conn.reply(req, status, body, kind=kind)


def pages(req, conn):
    """A bucket of S3: objects, and what is in it."""
    if req.method == "PUT":
        conn.reply(req, 200, b"", [("ETag", '"d"')])
    elif "list-type" in req.query:
        conn.reply(req, 200, "<ListBucketResult><Name>acme</Name><Contents><Key>door.txt</Key><Size>17</Size></Contents>"
                   "</ListBucketResult>", kind="application/xml")
    else:
        conn.reply(req, 200, TEXT, [("ETag", '"d"')], kind="text/plain")


def either(post, get):
    return lambda req, conn: (post if req.method in ("POST", "PUT") else get)(req, conn)


def listed(req, conn):
    """Models, as OpenAI and as Anthropic list them."""
    conn.reply(req, 200, {"object": "list", "has_more": False, "first_id": "m", "last_id": "m", "data": [
        {"id": "m", "type": "model", "object": "model", "created": 1, "owned_by": "x", "display_name": "m",
         "created_at": "2026-01-01T00:00:00Z"}]})


USER = {"login": "octo", "id": 1, "node_id": "u", "bio": TEXT, "type": "User", "url": "https://api.github.com/user"}
REPO = {"id": 1, "name": "door", "full_name": "acme/door", "description": TEXT, "owner": USER,
        "url": "https://api.github.com/repos/acme/door"}
VECTORS = {"object": "list", "id": "e", "model": "m", "usage": {"total_tokens": 1, "prompt_tokens": 1},
           "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}]}
FILE = {"id": "file-1", "object": "file", "bytes": 5, "created_at": 1, "filename": "door.txt", "purpose": "assistants",
        "status": "processed"}
ISSUE = {"id": 7, "number": 7, "title": TEXT, "url": "https://api.github.com/x"}
ITEM = {"Item": {"id": {"S": "1"}, "text": {"S": TEXT}}}
ANSWERS = (  # (host, path, how that API answers)
    ("", r"/chat/completions$", answers.chat), ("", r":(stream)?[gG]enerateContent$", answers.gemini),
    ("", r"/v1/messages$", answers.messages), ("", r"/v1/messages/count_tokens$", fixed({"input_tokens": 3})),
    ("", r":countTokens$", fixed({"totalTokens": 3})), ("cohere", r"^/v2/chat$", answers.cohere),
    ("openai|anthropic", r"^/v1/models$", listed), ("openai|mistral", r"^/v1/embeddings$", fixed(VECTORS)),
    ("openai", r"^/v1/files$", fixed(FILE)),
    ("huggingface", r"^/api/whoami-v2$", fixed({"type": "user", "name": "octo", "orgs": []})),
    (r"s3\.", r"^/", pages), ("dynamodb", r"^/$", raw(json.dumps(ITEM), "application/x-amz-json-1.0")),
    ("github", r"^/user$", fixed(USER)), ("github", r"^/repos/acme/door$", fixed(REPO)),
    ("github", r"^/repos/acme/door/issues(/7)?$", either(
        raw(json.dumps(dict(ISSUE, number=8)), "application/json", 201), fixed(ISSUE))),
    ("gitlab", r"/projects/1$", fixed({"id": 1, "description": TEXT})),
    ("gitlab", r"/projects/1/issues$", fixed([{"id": 7, "iid": 7, "title": TEXT}])),
)


def double(host):
    known = [(path, answer) for where, path, answer in ANSWERS if re.search(where, host)]

    def handler(req, conn):
        for path, answer in known:
            if re.search(path, req.path):
                answer(req, conn)
                return
        conn.reply(req, 404, {"message": "the double has no " + req.path})
    return handler


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
    """Doubles of all hosts of some libraries, a bare place and one sandbox with a rule for each library."""

    def __init__(self, t, libraries):
        self.t, self.libraries, self.d = t, libraries, durward.Durward(t)
        self.scanner, self.keys, self.origins = scan.Scanner(), {}, {}
        for host in sorted({h for x in libraries for h in x.hosts}):
            self.origins[host] = origin.Origin(t, self.d.ca, host, double(host))
            self.d.origin(host, self.origins[host])
        for i, x in enumerate(libraries):
            self._key(i, x)
        self.outputs, self.given = [], []

    def _key(self, i, x):
        """Its key, and a policy with nothing but its rule."""
        value, name = scan.canary(x.prefix), "k%d" % i
        self.scanner.add(name, value)
        self.d.secret(name, value, **({"kind": x.kind} if x.kind else {}))
        self.keys[x.name] = AKIA if x.aws else value.decode()
        if x.aws:
            self.d.secret("id", AKIA)
            self.d.secrets["aws%d" % i] = {"aws_key": {"access_key_id": "id", "secret_access_key": name}}
            name = "aws%d" % i
        rules = json.loads(json.dumps(x.rules()).replace('"KEY"', json.dumps(name)))
        self.d.policy("p%d" % i, rules, {"KEY": "{{placeholder %s}}" % name})

    def trust(self):
        """What the bare run's programs know of the doubles' authority."""
        pem = self.d.ca.pem
        names = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE")
        return dict({n: pem for n in names}, LANG="C.UTF-8", PATH="/usr/local/bin:/usr/bin:/bin")

    def count(self, hosts):
        return {h: len(self.origins[h].requests) for h in hosts}

    def bare(self, x, turns):
        """-> (what it printed, its requests, its errors)"""
        before = self.count(x.hosts)
        b = bare.Bare(self.t, {h: self.origins[h] for h in x.hosts}, self.d.work, self.d.env["HOME"])
        said = b.run(x.argv(self.keys[x.name], turns), self.trust(), timeout=300)
        return self.outcome(said.returncode, said.stdout, said.stderr, before)

    def inside(self, i, x, turns):
        before = self.count(x.hosts)
        flags = ["--policy", "p%d" % i]
        for bind in ("%s:%s:ro" % (f, f) for f in (durward.INSIDE, x.folder())):
            flags += ["--bind", bind]
        argv = " ".join('"$KEY"' if w == "KEY" else "'%s'" % w for w in x.argv("KEY", turns))
        r = self.d.run(["sh", "-c", "printenv KEY >key.txt; " + argv], flags, timeout=300)
        with open(os.path.join(self.d.work, "key.txt"), encoding="utf-8") as f:
            self.given.append(f.read().strip())
        self.outputs += [r.stdout, r.stderr]
        return self.outcome(r.returncode, r.stdout, r.stderr, before)

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
