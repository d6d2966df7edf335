"""What group C adds to the bed: origins of credentials in every place, two sandboxes, and what they say."""
import json

from harness import scan

from . import reflecting, within
from .bed import Bed

SHOW = "show.example.com"      # echoes what it was asked, with the bearer `odd`
GOES = "goes.example.com"      # answers with redirects
QUERY, PATH, BODY = "query.example.com", "path.example.com", "body.example.com"
NARROW = "narrow.example.com"  # some methods and paths only
CACHED = "cached.example.com"
WORST = ".worst.example.com"   # secrets that no field may hold
WORD = scan.canary("said-").decode()  # what refused requests say, and no answer may repeat
TARGETS = ("deps.example.com", "keyed.example.com")
BYTES = [b for b in range(32) if b != 10] + [127]


def shown(req, conn):
    conn.reply(req, 200, {"target": req.target, "headers": req.headers, "body": req.body.decode("latin-1")})


def goes(req, conn):
    """/STATUS/HOST/PATH"""
    _, status, host, path = req.path.split("/", 3)
    conn.reply(req, int(status), b"moved", [("Location", "https://%s/%s" % (host, path))])


class Cached:
    """A new number each time, for ever valid."""

    def __init__(self):
        self.n = 0

    def __call__(self, req, conn):
        self.n += 1
        conn.reply(req, 200, {"n": self.n}, [
            ("Cache-Control", "public, max-age=31536000, immutable"), ("ETag", '"one"'),
            ("Expires", "Fri, 31 Dec 2100 23:59:59 GMT"), ("Last-Modified", "Fri, 01 Jan 2021 00:00:00 GMT")])


def more(bed):
    s = bed.s
    value = reflecting.secret()
    bed.value, bed.reflected, bed.shapes = value, 0, 0
    s.d.secret("odd", value)
    s.scanner.add("odd", value)
    odd = {"bearer": "odd"}
    bed.pages = reflecting.Pages(value)
    bed.old = s.add(reflecting.OLD, reflecting.Old(bed.pages))
    bed.new = reflecting.New(s.test, s.d.ca, reflecting.NEW, bed.pages)
    s.d.origin(reflecting.NEW, bed.new)
    for host in (reflecting.OLD, reflecting.NEW):
        s.rule(allow=host, cookies="pass", **{"with": odd})
    bed.show, bed.goes, bed.cached = s.add(SHOW, shown), s.add(GOES, goes), s.add(CACHED, Cached())
    for host in (SHOW, GOES, CACHED):
        s.rule(allow=host, **{"with": odd})
    bed.query, bed.path, bed.body = s.add(QUERY, shown), s.add(PATH, shown), s.add(BODY, shown)
    s.rule(allow=QUERY, **{"with": {"query": {"api_key": "odd"}}})
    s.rule(allow=PATH, **{"with": {"placeholder": {"secret": "github", "in": "path"}}})
    s.rule(allow=BODY, **{"with": {"placeholder": {"secret": "github", "in": {"body": "/t"}}}})
    bed.narrow = s.add(NARROW, shown)
    s.rule(allow=NARROW + "/repos/acme/**", access="read-only", **{"with": odd})
    s.rule(allow=NARROW + "/repos/acme/*/issues", methods=["POST"], **{"with": odd})
    s.rule(deny=NARROW + "/repos/acme/private/**")
    bed.worst = s.add("worst.example.com", shown)
    s.d.origin(WORST, bed.worst)
    for b in BYTES:
        s.d.secret("worst%d" % b, b"worst-" + bytes([b]) + b"-of-all-possible-values")
        s.rule(allow="b%d%s" % (b, WORST), **{"with": {"bearer": "worst%d" % b}})
    bed.origins += [bed.old, bed.new, bed.show, bed.goes, bed.cached, bed.query, bed.path, bed.body,
                    bed.narrow, bed.worst]


class BedC(Bed):
    """.gate is one sandbox's; .within and .other are both."""

    def __init__(self, test):
        super().__init__(test, more)
        self.outside = self.gate
        self.within, self.other = within.Inside(self), within.Inside(self)
        self.enter(self.within.gate)
        self.github, self.openai = (self.within.own[k] for k in ("GITHUB_TOKEN", "OPENAI_API_KEY"))

    def outputs(self):
        """What the daemon tells whoever asks it."""
        d = self.d
        for args in (("status",), ("sandbox", "ls", "--json"), ("sandbox", "show", "--json", self.within.id),
                     ("secret", "ls", "-c", d.conf), ("explain", "-c", d.conf, "GET", "https://%s/x" % SHOW),
                     ("audit", "query", "--json", d.audit_dir), ("audit", "exfil", "--json", d.audit_dir),
                     ("check", d.conf)):
            r = d.command(*args, env={"DURWARD_SOCKET": d.socket})
            yield r.stdout + r.stderr
        yield self.within.api.raw("GET", "/metrics")[2]
        yield json.dumps(self.within.api.ask("GET", "/v1/events?limit=1000"))
        yield self.within.api.sh(self.within.id, "env; cat /proc/*/environ /proc/*/cmdline /tmp/* 2>/dev/null")[1]

    def end(self):
        said = list(self.outputs())
        for box in (self.within, self.other):
            box.close()
        self.s.scanner.search(b"".join(x.raw for o in self.origins if o not in self.named() for x in o.requests
                                       if hasattr(x, "raw")), "an origin without a credential")
        self.s.clean(said, "C23 rows")
        if self.d.daemon:
            self.test.eq(self.d.stop(), 0, "the daemon ends well")

    def named(self):
        return (self.s.github, self.s.openai, self.keyed, self.old, self.new, self.show, self.goes, self.cached,
                self.query, self.path, self.body, self.narrow)
