"""doc/openapi.json: which answers an operation may have, and what an object must have."""
import json
import re


class Document:
    def __init__(self, path):
        with open(path) as f:
            self.doc = json.load(f)
        self.routes = []
        for template, methods in self.doc["paths"].items():
            pattern = re.compile(re.sub(r"\\\{[a-z]+\\\}", "[^/]+", re.escape(template)) + "$")
            for method, what in methods.items():
                if method != "parameters":
                    self.routes.append((method.upper(), pattern, what))

    def operation(self, method, path):
        path = path.partition("?")[0]
        for m, pattern, what in self.routes:
            if m == method and pattern.match(path):
                return what
        raise KeyError("%s %s is not in the document" % (method, path))

    def statuses(self, method, path):
        return {int(s) for s in self.operation(method, path)["responses"]}

    def schema(self, name):
        return self.doc["components"]["schemas"][name]

    def faults(self, name, value):
        """What of an object is not as its schema says: members, their types, their words."""
        found = []
        schema = self.schema(name)
        for key in schema.get("required", ()):
            if key not in value:
                found.append("%s has no %s" % (name, key))
        for key, v in value.items():
            rule = schema["properties"].get(key)
            if rule is None:
                found.append("%s has an unknown %s" % (name, key))
                continue
            if "$ref" in rule:
                rule = dict(self.schema(rule["$ref"].rpartition("/")[2]), **{k: x for k, x in rule.items() if k != "$ref"})
            kinds = rule.get("type")
            kinds = [kinds] if isinstance(kinds, str) else kinds
            if kinds and not any(is_a(v, k) for k in kinds):
                found.append("%s.%s is no %s: %r" % (name, key, "/".join(kinds), v))
            if "enum" in rule and v not in rule["enum"]:
                found.append("%s.%s is %r" % (name, key, v))
            if isinstance(v, str) and "pattern" in rule and not re.search(rule["pattern"], v):
                found.append("%s.%s is %r" % (name, key, v))
        return found


def is_a(v, kind):
    if kind in ("integer", "boolean"):
        return isinstance(v, bool) == (kind == "boolean") and isinstance(v, int)
    return isinstance(v, {"string": str, "object": dict, "array": list, "null": type(None)}[kind])
