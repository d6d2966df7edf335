"""Which rule decides, as doc/durward.yaml.5.md and the rows of SPECIFICATION.md say it (promise P7).

Written from those documents alone and as plainly as they are: no index, no order that is worked out before, every
rule asked in every reading. What the C makes of the same policies and requests is held against it."""
import functools
import json
import re

METHODS = ("GET HEAD OPTIONS POST PUT PATCH DELETE QUERY PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK REPORT "
           "SEARCH MKCALENDAR PURGE MERGE MKACTIVITY CHECKOUT LIST ACL").split()
READ_ONLY = ("GET", "HEAD", "OPTIONS")
UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
SLASH = "\1"  # one that was escaped: no path that is not refused holds a control
ANY = "any"   # `*` alone in a segment


# ---- the path of a request: what is refused, its normal form, and every way to read it ----

def decoded(path):
    """Percent escapes decoded however often they are nested; an escaped slash stays apart from a slash."""
    while True:
        more = ESCAPE.sub(lambda m: SLASH if m.group(1).upper() == "2F" else chr(int(m.group(1), 16)), path)
        if more == path:
            return path
        path = more


@functools.lru_cache(1 << 16)
def ambiguous(path):
    if not path.startswith("/") or path.startswith("//") or re.search("%(?![0-9A-Fa-f]{2})", path):
        return True
    if re.search(r"[^!-~]|[#?\\]", path):
        return True
    plain = decoded(path)
    if re.search("[\0\x02-\x1f\x7f\\\\]", plain):
        return True
    return any(s.partition(";")[0] in (".", "..") for s in re.split("[/" + SLASH + "]", plain))


@functools.lru_cache(1 << 16)
def normal(path):
    """RFC 3986, 6.2.2: what allows match."""
    def one(m):
        c = chr(int(m.group(1), 16))
        return c if c in UNRESERVED else m.group(0).upper()
    return ESCAPE.sub(one, path)


# (an escaped slash separates, the ends of segments are left out, parameters too)
READINGS = [(split, trim, parameters) for split in (False, True)
            for trim, parameters in ((False, False), (True, False), (True, True))]


def read(path, split, trim, parameters):
    """As an origin may read it that takes letters in either case and decodes as often as it can."""
    s = re.sub("[A-Z]", lambda m: m.group(0).lower(), decoded(path))
    if split:
        s = s.replace(SLASH, "/")
    if parameters:
        s = re.split("[?#]", s)[0]
    parts = s.split("/")[1:]
    if parameters:
        parts = [p.partition(";")[0] for p in parts]
    if trim:
        parts = [p.rstrip(". ") for p in parts]
    last = parts[-1:] if not trim else []  # a slash at the end is there until it is left out
    return [p for p in parts[:len(parts) - len(last)] if p] + last or [""]


@functools.lru_cache(1 << 16)
def readings(path):
    return [read(path, *r) for r in READINGS]


# ---- patterns ----

def glob(text, star="*"):
    return re.compile("".join("[^/]*" if c == star else re.escape(c) for c in text) + r"\Z", re.S)


def segment(text):
    return ANY if text == "*" else glob(text) if "*" in text else text


def segment_matches(s, word):
    return word != "" if s is ANY else s == word if isinstance(s, str) else s.match(word) is not None


class Path:
    """Segments, and whether any rest may follow them."""

    def __init__(self, texts, tail):
        self.texts, self.tail = texts, tail
        self.segments = [segment(t) for t in texts]

    def matches(self, parts):
        n = len(self.segments)
        if len(parts) < n or len(parts) > n and not self.tail:
            return False
        return all(map(segment_matches, self.segments, parts))

    def contains(self, other):
        """Each of its paths is one of ours: a star of theirs is a letter that nobody else writes."""
        if other.tail and not self.tail:
            return False
        return self.matches([t.replace("*", "\2") for t in other.texts])

    def meets(self, other):
        short, long = sorted((self, other), key=lambda p: len(p.texts))
        if len(short.texts) < len(long.texts) and not short.tail:
            return False
        return all(segments_meet(a, b) for a, b in zip(short.texts, long.texts))


def segments_meet(a, b):
    """Some word is in both."""
    if "*" in (a, b):
        return a != "" and b != ""

    @functools.lru_cache(None)
    def at(i, j):
        if i == len(a) and j == len(b):
            return True
        if i < len(a) and a[i] == "*":
            return at(i + 1, j) or j < len(b) and at(i, j + 1)
        if j < len(b) and b[j] == "*":
            return at(i, j + 1) or i < len(a) and at(i + 1, j)
        return i < len(a) and j < len(b) and a[i] == b[j] and at(i + 1, j + 1)
    return at(0, 0)


PORTS = {"https": 443, "http": 80}


class Pattern:
    def __init__(self, text):
        m = re.match(r"(?:(https?)://)?([^/:]+)(?::(\d+))?(/.*)?\Z", text)
        self.scheme = m.group(1) or "https"
        self.host, self.port = m.group(2), int(m.group(3) or PORTS[self.scheme])
        path = m.group(4) or "/**"
        self.tail = path.endswith("/**")
        if self.tail:
            path = path[:-3]
        self.everything = self.tail and path == ""
        self.path = Path(normal(path).split("/")[1:], self.tail)
        self.read = [Path(self.reading(path, *r), self.tail) for r in READINGS]
        self.given = sum(1 + len(t.replace("*", "")) for t in self.path.texts)  # bytes, those of slashes too

    def reading(self, path, split, trim, parameters):
        """The same reading of the pattern, but for the parameters that its author wrote."""
        return read(path, split, trim, False) if path else []

    def names(self, host):
        return host.endswith(self.host) and host != self.host if self.host.startswith(".") else host == self.host

    def origin(self, request):
        return (self.scheme, self.port) == (request.scheme, request.port) and self.names(request.host)

    def contains_host(self, other):
        if other.host.startswith("."):
            return self.host.startswith(".") and other.host.endswith(self.host)
        return self.names(other.host)

    def contains(self, other):
        return (self.scheme, self.port) == (other.scheme, other.port) and self.contains_host(other) and \
            self.path.contains(other.path)

    def meets(self, other):
        return (self.scheme, self.port) == (other.scheme, other.port) and \
            (self.contains_host(other) or other.contains_host(self)) and self.path.meets(other.path)


# ---- rules: one for each pattern ----

def listed(value):
    return value if isinstance(value, list) else [value]


class Rule:
    def __init__(self, index, number, rule, pattern):
        self.index, self.number, self.said = index, number, rule
        self.verb = next(v for v in ("allow", "ask", "deny") if v in rule)
        self.pattern = Pattern(pattern)
        self.read_only = rule.get("access") == "read-only"
        self.scoped = self.read_only or "methods" in rule
        self.methods = READ_ONLY if self.read_only else listed(rule.get("methods", METHODS))
        if self.verb == "deny" and not self.scoped:
            self.methods = None  # any, those that no rule can name too
        self.credential = rule.get("with")
        self.secret = next(iter(self.credential.values())) if self.credential else None

    def has_method(self, method):
        return self.methods is None or method in self.methods

    def terms(self):
        """All that it asks and does, but for patterns and methods. A budget is one rule's own."""
        said = {k: v for k, v in self.said.items() if k not in ("allow", "ask", "methods", "access")}
        return self.verb, json.dumps(said, sort_keys=True), self.index if "budget" in said else None

    def matches(self, request):
        return self.pattern.origin(request) and self.pattern.path.matches(request.parts)

    def matches_read(self, request):
        """In any reading, its normal form among them; of the pattern's readings too, whichever: an origin that decodes
        once separates by the pattern's %2F and not by the path's %252F."""
        return self.pattern.origin(request) and (self.pattern.path.matches(request.parts) or any(
            p.matches(parts) for p in self.pattern.read for parts in request.readings))

    def narrower(self, other):
        """Strictly: all that it matches the other matches too, and not the other way round."""
        def within(a, b):
            return set(a.methods) <= set(b.methods) and b.pattern.contains(a.pattern)
        return within(self, other) and not within(other, self)

    def rank(self):
        """Of two, neither narrower: the more exact host, the longer fixed part of the path (the longer path, fewer
        stars, fewer methods), the order in the file."""
        p, host = self.pattern, self.pattern.host
        alone = sum(t == "*" for t in p.path.texts)
        return (host.startswith("."), -len(host) if host.startswith(".") else 0, -p.given, -p.given - alone,
                "".join(p.path.texts).count("*"), p.tail, len(self.methods), self.number)

    def before(self, other):
        if self.verb != other.verb:
            return self.verb == "ask"
        if self.narrower(other) or other.narrower(self):
            return self.narrower(other)
        return self.rank() < other.rank()


    def goes_before(self, other, request):
        """In some reading of the request, which the other would decide: it asks, or the other is wider there."""
        if not self.matches_read(request) or not self.before(other):
            return False
        return self.verb != other.verb or any(
            p.matches(parts) and not self.no_narrower(other, p, o)
            for p, o, parts in zip(self.pattern.read, other.pattern.read, request.readings))

    def no_narrower(self, other, p, o):
        """In this reading of both paths: neither in what it names nor, where that is the same, in its methods."""
        within = o.contains(p) and other.pattern.contains_host(self.pattern)
        return p.contains(o) and self.pattern.contains_host(other.pattern) and not (
            within and set(self.methods) < set(other.methods))


class Request:
    def __init__(self, scheme, host, port, method, path, query=None, fields=(), kind="", body=None):
        self.scheme, self.host, self.port, self.method, self.path = scheme, host, port, method, path
        self.query, self.fields, self.kind, self.body = query, fields, kind, body
        self.ambiguous = ambiguous(path)
        self.parts = normal(path).split("/")[1:]
        self.readings = readings(path) if not self.ambiguous else []


class Answer:
    """verdict, code, and which rules it may be said of; matters: with another method it might be otherwise."""

    def __init__(self, verdict, code, rules=(), matters=False):
        self.verdict, self.code, self.matters = verdict, code, matters
        self.rules = list(rules)

    @property
    def rule(self):
        return self.rules[0] if self.rules else None


class Policy:
    def __init__(self, rules):
        self.rules, self.said = [], rules
        for index, rule in enumerate(rules):
            for pattern in listed(next(rule[v] for v in ("allow", "ask", "deny") if v in rule)):
                self.rules.append(Rule(index, len(self.rules), rule, pattern))
        self.denies = [r for r in self.rules if r.verb == "deny"]
        self.passes = [r for r in self.rules if r.verb != "deny"]

    def conflict(self):
        """Two that overlap, neither strictly narrower, and differ in their credential: a load error."""
        for i, a in enumerate(self.passes):
            for b in self.passes[:i]:
                if a.verb == b.verb and a.credential != b.credential and a.index != b.index and set(a.methods) & set(b.methods) and \
                        a.pattern.meets(b.pattern) and not a.narrower(b) and not b.narrower(a):
                    return a, b
        return None

    def searched(self, host):
        """Some rule sends a secret to this host, on whatever port: its replies are the injector's."""
        return any(r.credential and r.pattern.names(host) for r in self.passes)

    def by_injector(self, rule, host):
        """It gets a secret, somebody is asked, its messages are read again, or its reply is searched."""
        return bool(rule.credential or rule.verb == "ask" or "mcp" in rule.said or self.searched(host))

    # ---- by authority, method and path ----

    def decide(self, q):
        if q.ambiguous:
            return Answer("deny", "path_ambiguous")
        denies = [r for r in self.denies if r.matches_read(q)]
        found = [r for r in denies if r.has_method(q.method)]
        if found:
            return Answer("deny", "denied_by_rule", found)
        here = [r for r in self.passes if r.matches(q)]
        fits = [r for r in here if r.has_method(q.method)]
        if not fits:
            return Answer("deny", "method" if here else "no_rule", here)
        first = next(r for r in fits if not any(o.before(r) for o in fits))
        near = [r for r in self.passes if r is not first and r.goes_before(first, q)]
        bars = [r for r in near if r.has_method(q.method) and r.terms() != first.terms()]
        if bars:
            return Answer("deny", "respelled", bars)
        bars = [r for r in near if r.read_only and not r.has_method(q.method)]
        if bars:
            return Answer("deny", "method", bars)
        matters = first.scoped or bool(denies) or any(
            not r.has_method(q.method) and r.terms() != first.terms() for r in near)
        return Answer("ask" if first.verb == "ask" else "allow", "ok", [first], matters)

    # ---- and by what the rule that decided asks ----

    def admission(self, q):
        """By the head alone: the one list that gate, injector and `explain` ask."""
        if q.method not in METHODS:
            return Answer("deny", "method")
        a = self.decide(q)
        if a.verdict == "deny":
            return a
        said = a.rule.said
        if "//" in q.path and ("graphql" in said or "mcp" in said):
            return Answer("deny", "path_ambiguous", a.rules)
        code = asked_of_query(said, q) or asked_of_fields(said, q)
        if code is None and a.matters and names_method(q.query):
            code = "method_override"
        return Answer("deny", code, a.rules) if code else a

    def explain(self, q):
        """The code that is said of a URL."""
        if "\\" in q.path:
            return "bad_target"
        return self.admission(q).code

    def answer(self, q):
        a = self.admission(q)
        code = None if a.verdict == "deny" else asked_of_body(a.rule.said, q)
        return Answer("deny", code, a.rules) if code else a

    # ---- what the two of our roles that decide say to it ----

    def gate(self, q):
        """(status, code) to the client, whose connection says the authority before a request is said; code None: it
        goes on, if nobody who is asked refuses it."""
        if q.scheme == "https" and not self.reachable(q):
            return 403, "no_rule"
        if "\\" in q.path:
            return 400, "bad_target"
        a = self.answer(q)
        if a.verdict == "deny" and a.code == "mcp" and q.body is not None and q.body[0] != "graphql":
            return 200, "mcp"  # a JSON-RPC error, where a message has an id
        return (200, None) if a.verdict != "deny" else refusal(q, a.code)

    def reachable(self, q):
        """An allow or ask names it, whatever the path, and no deny covers all of it."""
        return any(r.pattern.origin(q) for r in self.passes) and \
            not any(r.methods is None and r.pattern.everything and r.pattern.origin(q) for r in self.denies)

    def injector(self, q, secret):
        """(status, code) to a gate that asks for this secret ("": for none) and says nothing of a body: it looks
        into none."""
        a = self.admission(q)
        if a.verdict == "deny":
            return refusal(q, a.code)
        if not self.by_injector(a.rule, q.host) or secret != (a.rule.secret or ""):
            return 403, "grant_denied"
        if "mcp" in a.rule.said and q.method not in ("GET", "DELETE", "OPTIONS"):
            return 403, "mcp"  # what a gate says is not enough: there is no message
        return 200, None


STATUS = {"path_ambiguous": 400, "body_ambiguous": 400, "content_type": 415}


def refusal(q, code):
    """(status, code): a method that is never carried is refused as such."""
    return 405 if code == "method" and q.method not in METHODS else STATUS.get(code, 403), code


def asked_of_query(said, q):
    """Only these parameters, each at most once, and nothing that could be taken apart otherwise."""
    if "query" not in said or q.query is None:
        return None
    seen = []
    for part in q.query.split("&") if q.query else []:
        name, _, value = part.partition("=")
        if re.search("[;+]|%(?![0-9A-Fa-f]{2})", part):
            return "query"
        name, value = (ESCAPE.sub(lambda m: chr(int(m.group(1), 16)), x) for x in (name, value))
        if re.search("[%\0]", name + value):
            return "query"
        allowed = said["query"].get(name)
        if allowed is None or name in seen or allowed != "*" and value not in listed(allowed):
            return "query"
        seen.append(name)
    return None


def asked_of_fields(said, q):
    for name, allowed in said.get("headers", {}).items():
        values = [v for n, v in q.fields if n == name.lower()]
        if len(values) != 1 or allowed != "*" and values[0] not in listed(allowed):
            return "header"
    return None


def names_method(query):
    """A parameter `_method`, with percent escapes or not."""
    return any(ESCAPE.sub(lambda m: chr(int(m.group(1), 16)), p.partition("=")[0]).lower() == "_method"
               for p in (query or "").split("&"))


def asked_of_body(said, q):
    """body: (what it is, its operations or tools); the generator writes the bytes that say so."""
    if "graphql" in said:
        if q.method not in ("POST", "GET", "HEAD"):
            return "graphql"
        if q.method != "POST":
            return "graphql" if q.body is None else "framing"
        if q.query is not None or q.body is None:
            return "graphql"
        if q.kind != "application/json":
            return "content_type"
        what, names = q.body
        if what == "broken":
            return "body_ambiguous"
        return "graphql" if what != "graphql" or "mutation" in names else None
    if "mcp" in said:
        if q.body is None:
            return None if q.method in ("GET", "DELETE", "OPTIONS") else "mcp"
        if q.kind != "application/json":
            return "content_type"
        if q.body[0] == "broken":
            return "body_ambiguous"
        what, names = q.body
        return None if what == "mcp" and set(names) <= set(said["mcp"]["tools"]) else "mcp"
    return None
