"""Policies by chance, and requests that are near to what they name, in every spelling."""
import json

from .model import METHODS, Request

HOSTS = ("ok.com", "ok.com", "ok.com", "ok.com", "a.ok.com", "b.a.ok.com", "far.com")
PATTERN_HOSTS = ("ok.com", "ok.com", "ok.com", "ok.com", ".ok.com", ".ok.com", ".a.ok.com", "a.ok.com")
WORDS = ("a", "b", "ab", "admin", "merge")
STARS = ("*", "*", "a*", "*b", "*m*")
FIRST = ("GET", "GET", "PUT", "POST", "POST", "DELETE", "HEAD")
VALUES = {"x-a": "1", "x-b": "2"}
JSON = "application/json"
GRAPHQL = {"query": '{"query":"query Q { user }"}', "mutation": '{"query":"mutation M { kill }"}',
           "query mutation": '{"query":"query Q { user } mutation M { kill }","operationName":"Q"}'}


TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"  # an issuer's, by its looks


class Chance:
    def __init__(self, random):
        self.r = random

    def one(self, values):
        return values[self.r.randrange(len(values))]

    def in_(self, n):
        """Once in n times."""
        return self.r.randrange(n) == 0

    # ---- policies ----

    def path(self, starred):
        parts = [self.one(STARS) if starred and self.in_(3) else self.one(WORDS)
                 for _ in range(self.one((1, 1, 2, 2, 3, 4)))]
        text = "/" + "/".join(parts)
        if starred and self.in_(40):
            text = text.replace("a", "A", 1) if self.in_(2) else text.replace("a", "%61", 1)
        if starred and self.in_(40):
            text += self.one(("/", "%2Fa", ";v=1", "%20x"))
        if starred and self.in_(3):
            return text.rstrip("/") + "/**"
        return text

    def pattern(self):
        scheme = "http://" if self.in_(10) else ""
        port = self.one((":8443", ":443", ":80")) if self.in_(12) else ""
        path = "" if self.in_(5) else "/" if self.in_(20) else "/**" if self.in_(20) else self.path(True)
        return scheme + self.one(PATTERN_HOSTS) + port + path

    def conditions(self, rule):
        if self.in_(5):
            rule["headers"] = self.one(({"x-a": "1"}, {"x-a": ["1", "3"]}, {"x-b": "*"}))
        if self.in_(7):
            rule["query"] = self.one(({}, {"q": "*"}, {"q": ["x", "y"]}, {"q": "*", "page": "1"}))
        if self.in_(9):
            rule["graphql"] = "read-only"
        elif self.in_(9):
            rule["mcp"] = {"tools": self.one(([], ["read"], ["read", "list"]))}
        if self.in_(10):
            rule["budget"] = {"requests": "1000000/s"}
        if self.in_(12):
            rule["set_headers"] = {"x-session": self.one(("1", "2", TOKEN))}
        if self.in_(12) and not ("graphql" in rule or "mcp" in rule):
            rule["websocket"] = True

    def rule(self):
        verb = self.one(("allow",) * 6 + ("ask", "deny", "deny"))
        patterns = [self.pattern() for _ in range(1 if not self.in_(5) else 2)]
        rule = {verb: patterns if len(patterns) > 1 else patterns[0]}
        if self.in_(4):
            rule["methods"] = self.r.sample(METHODS[:7], self.one((1, 1, 2, 4)))
        elif verb != "deny" and self.in_(5):
            rule["access"] = "read-only"
        if verb == "deny":
            return rule
        if self.in_(3):
            rule["with"] = {"bearer": self.one(("one", "one", "one", "two"))}
            if any(p.startswith("http:") for p in patterns):
                rule["allow_plaintext"] = True
        self.conditions(rule)
        return rule

    def policy(self):
        return [self.rule() for _ in range(self.one((1, 2, 3, 4, 5, 6, 8)))]

    # ---- requests ----

    def byte(self, c):
        how = self.r.randrange(5)
        if how < 2:
            return ("%%%02x" if how else "%%%02X") % ord(c)
        if how == 2:
            return self.one(("%%25%02x", "%%2525%02X", "%%%%25%02x"[2:])) % ord(c)
        return c.upper() if how == 3 else c

    def respelled(self, path):
        """The same path as some origin might read it, written otherwise."""
        at, often, found = self.r.randrange(len(path)), self.one((1000, 12, 4)), ""
        for i, c in enumerate(path):
            if c == "/":
                found += self.one(("%2f", "%2F", "%252f", "/%2f")) if i and self.in_(14) else c
                continue
            found += self.byte(c) if i == at or self.in_(often) else c
            if path[i + 1:i + 2] in ("", "/") and self.in_(8):
                found += self.one((";", ";x=1", ".", "%20", "%2e", "%3Bx", "..", "%2520", ";a.", ".;"))
        if self.in_(6):
            found += self.one(("/", "%2f", "%3fx", "%23x", "%3Fx/y", "/;x", "/%20", "%2f%2f"))
        if self.in_(20):
            at = found.find("/", self.r.randrange(len(found)))
            found = found[:at] + "/" + found[at:] if at >= 0 else found + "//x"
        if self.in_(60):
            found += self.one(("//", "%00", "/..", "/%2e%2e/a", "\\", "%5c", "%0a", "%", "%zz", "/.;x", "%2f..", "%25zz"))
        return found

    def near(self, pattern):
        """A path that a pattern names."""
        at = pattern.find("/", pattern.find("://") + 3)
        path = pattern[at:] if at >= 0 else "/"
        if path.endswith("/**"):
            path = path[:-3] + self.one(("", "/", "/a", "/merge/b"))
        return "".join(self.one(("", "a", "x", "admin")) if c == "*" else c for c in path).replace("//", "/x/") or "/"

    def host(self, pattern):
        """One that it names."""
        host = pattern.partition("://")[2] or pattern
        host = host.partition("/")[0].partition(":")[0]
        return self.one(("a", "b.a", "c")) + host if host.startswith(".") else host

    def body(self, rule):
        """(type, what it is, its bytes)"""
        if self.in_(3) or not ("graphql" in rule or "mcp" in rule):
            return "", None, ""
        if self.in_(10):
            return JSON, ("broken", ()), "{"
        if self.in_(10):
            return "text/plain", ("broken", ()), "x"
        if "graphql" in rule:
            names = self.one(sorted(GRAPHQL))
            return JSON, ("graphql", names.split()), GRAPHQL[names]
        tool = self.one(("read", "list", "kill"))
        method = self.one(("tools/call", "tools/call", "ping", "resources/list"))
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": tool}}
        return JSON, ("mcp", [tool] if method == "tools/call" else []) if method != "resources/list" else \
            ("other", []), json.dumps(message)

    def request(self, rules):
        rule = self.one(rules)
        pattern = next(v for k, v in rule.items() if k in ("allow", "ask", "deny"))
        pattern = pattern if isinstance(pattern, str) else self.one(pattern)
        scheme = "http" if pattern.startswith("http:") != self.in_(12) else "https"
        path = self.path(False) if self.in_(6) else self.near(pattern)
        if not self.in_(3):
            path = self.respelled(path)
        methods = FIRST if not self.in_(3) else tuple(rule.get("methods", FIRST))
        method = self.one(methods) if not self.in_(40) else self.one(("PATCH", "FOO", "get", "PURGE", "TRACE"))
        port = 443 if scheme == "https" else 80
        if ":8443" in pattern or self.in_(40):
            port = 8443
        elif pattern.endswith(":80"):
            port = 80
        host = self.one(HOSTS) if self.in_(6) else self.host(pattern)
        query = None if self.in_(2) else self.one(("", "q=x", "q=x&page=1", "q=x&q=y", "q=z", "%71=x", "q=a+b", "q=%2561",
                                                   "page=2", "q=x;y", "q=x%26page", "q=%78", "_method=DELETE", "q=x&%5Fmethod=PUT", "q=%"))
        fields = [(n, v if not self.in_(5) else "9") for n, v in VALUES.items() for _ in range(self.one((0, 1, 1, 1, 1, 2)))]
        kind, body, text = self.body(rule) if method in ("POST", "PUT") else ("", None, "")
        return Request(scheme, host, port, method, path, query, fields, kind, body), text
