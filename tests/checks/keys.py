"""The tables of keys in the C that reads configurations and profiles, and what is made of them: properties of their
schemas and tables of their manuals (tests/checks/schema).

A line of a table is KEY(name, type, standard, meaning) (rules/policy/node.h); RULE_KEY has before the standard which
rules may have the key. The schema's object that a table is of has a "$comment" that names it, as the table in the
manual has a line "<!-- keys: FILE:TABLE -->" above it."""
import json
import os
import re

import tree

COMMENT = "keys of "
MARK = re.compile(r"<!-- keys: (\S+) -->")
TABLE = re.compile(r"const struct key (\w+)\[\] = \{(.*?)\n\};", re.S)
PLAIN_TABLE = re.compile(r"struct key (\w+)\[\] = \{\s*\{")  # names alone
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[A-Za-z_]\w*|\d+|<<|[(),]')

TEXT = {"type": "string", "minLength": 1}
NAME = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$"
BASE_URL = r'^https://[^/?#% \t"\\]+(/[^?#% \t"\\]*[^/?#% \t"\\])?$'


def pattern(p, **more):
    return dict({"type": "string", "pattern": p}, **more)


def one_or_more(item, **more):
    return {"anyOf": [item, dict({"type": "array", "items": item, "minItems": 1}, **more)]}


# What AS(...) stands for; beside it the least value, where the manual's table has a column for that.
FORMS = {
    "any": {"type": "string"}, "text": TEXT, "path": TEXT, "address": TEXT, "bool": {"type": "boolean"},
    "strings": one_or_more(TEXT), "ranges": one_or_more(TEXT, maxItems=64),
    "command": {"type": "array", "prefixItems": [TEXT], "items": {"type": "string"}, "minItems": 1, "maxItems": 64},
    "name": pattern(NAME), "variable": pattern("^[A-Za-z_][A-Za-z0-9_]*$"),
    "entry": pattern(r"^(?!\.$|\.\.)[^/]{1,255}$"), "id": dict(TEXT, maxLength=128), "template": dict(TEXT, maxLength=1024),
    "duration": pattern("^[0-9]+[smh]$"), "age": pattern("^[0-9]+[mhd]$"),
    "lasting": pattern("^0*[1-9][0-9]*[smhd]$"), "idle": pattern("^[0-9]+[smhd]$"),
    "bytes": pattern("^[0-9]+[KMGT]B$"), "kilobytes": pattern("^[0-9]+KB$"), "share": pattern("^[0-9]+%$"),
    "image": pattern("^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"),
    "snapshot": pattern("^[a-z0-9][a-z0-9-]{0,62}$"),
    "engine_image": pattern("^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$"),
    "namespace": pattern("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"),
    "database": pattern("^postgres://[^/@]+/[^/]{1,63}$"),
    "socket": pattern(r"^/[^\x00-\x1f\x7f]*$", maxLength=107),
    "volumes": one_or_more(pattern(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}:/[^:\x00-\x1f\x7f]+(:ro)?$"), maxItems=8),
    "devices": one_or_more(pattern(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}/[A-Za-z0-9][A-Za-z0-9_-]{0,62}=[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$"), maxItems=8),
    "folders": one_or_more(pattern("^/"), maxItems=4),
    "syslog": {"type": ["boolean", "string"], "pattern": "^/"}, "url": pattern("^https?://"),
    "base_url": pattern(BASE_URL),
    "rates": one_or_more(pattern("^[1-9][0-9]*/[0-9]*[smhd]$")),
    "byte_rates": one_or_more(pattern("^[1-9][0-9]*(B|KB|MB|GB)/[0-9]*[smhd]$")),
}
LEAST = {"share": "1%", "lasting": "1s", "idle": "0s"}


def sources():
    return {p: tree.read(p) for p in tree.walk("rules", (".c", ".h"))}


def constant(name, texts):
    """Of an enum."""
    for text in texts.values():
        m = re.search(r"\b%s = (\d+)[,; }]" % name, text)
        if m:
            return int(m.group(1))
    raise KeyError(name)


def words(name, texts):
    """Of an array of texts."""
    for text in texts.values():
        m = re.search(r"const char \*const %s\[\w*\] = \{(.*?)\};" % name, text, re.S)
        if m:
            return re.findall(r'"([^"]*)"', m.group(1))
    raise KeyError(name)


def methods(texts):
    return re.findall(r'"([A-Z]{3,})"', texts["rules/policy/method.c"])


def unquoted(literals):
    return "".join(json.loads(x) for x in literals)


class Key:
    def __init__(self, arguments, texts):
        name, kind, *cells = arguments
        self.name = unquoted(name)
        self.meaning, self.standard = unquoted(cells[-1]), unquoted(cells[-2])
        self.on = unquoted(cells[0]) if len(cells) == 3 else ""
        self.kind, rest = kind[0], kind[1:]
        self.least = self.most = self.schema = None
        if self.kind == "AS":
            self.schema, self.least = FORMS.get(rest[1]), LEAST.get(rest[1])
            if rest[1] == "methods":
                self.schema = one_or_more({"enum": methods(texts)})
            elif self.schema is None:
                raise KeyError(rest[1])
        elif self.kind == "REF":
            self.schema = {"$ref": "#/$defs/" + rest[1]}
        elif self.kind in ("UINT", "COUNT"):
            numbers = [int(x) if x.isdigit() else constant(x, texts) for x in rest if x not in "(),"]
            self.least, self.most = numbers[-2:]
            self.schema = {"type": "integer", "minimum": self.least, "maximum": self.most}
            if self.least == self.most:
                self.schema = {"const": self.least}
            if self.kind == "COUNT":
                self.schema["default"] = numbers[0]
                self.standard = str(numbers[0])
        elif self.kind == "SIZE":
            self.least = "%dMiB" % (int(rest[1]) << int(rest[3]) >> 20)
            self.schema = pattern("^[0-9]+[KMG]i?B$")
        elif self.kind == "WORDS":
            self.schema = {"enum": [unquoted([x]) for x in rest if x[0] == '"']}
        elif self.kind == "WORDS_OF":
            self.schema = {"enum": words(rest[1], texts)}
        elif self.kind != "OWN":
            raise KeyError(self.kind)

    def cell(self, head):
        """In the manual's column of this head."""
        given = {"default": self.standard, "on": self.on, "least": self.least, "most": self.most}
        value = given[head] if head in given else self.meaning
        return "" if value is None else str(value)


def lines(body, texts):
    """The KEY(...) of a table: arguments as lists of tokens, cut at the outer commas."""
    for m in re.finditer(r"\b(?:RULE_)?KEY\(", body):
        depth, arguments = 1, [[]]
        for t in TOKEN.finditer(body, m.end()):
            word = t.group(0)
            depth += {"(": 1, ")": -1}.get(word, 0)
            if depth == 0:
                break
            if word == "," and depth == 1:
                arguments.append([])
            else:
                arguments[-1].append(word)
        yield Key(arguments, texts)


def tables():
    """FILE:TABLE -> its keys."""
    texts, found = sources(), {}
    for path, text in texts.items():
        for m in TABLE.finditer(text):
            keys = list(lines(m.group(2), texts))
            if keys:
                found["%s:%s" % (os.path.basename(path), m.group(1))] = keys
    return found


# ---- secrets that are made of others ----

def kinds():
    """The kinds of rules/compile/config_mint.c: name -> (sort, [(field, type, needed, standard)])."""
    text, found = tree.read("rules/compile/config_mint.c"), {}
    shared = re.search(r"#define KEY_VALUE_STORE(.*?[^\\])\n", text, re.S).group(1)
    body = re.search(r"struct mint_kind kinds\[DERIVED_KINDS\] = \{(.*?)\n\};", text, re.S).group(1)
    for part in re.split(r"\n    \[(?=DERIVED_)", body)[1:]:
        part = part.replace("KEY_VALUE_STORE", shared)
        rows = re.findall(r'\b(NEED|MAY|ELSE)\((\w+), ([A-Z]+)(?:, (?:"([^"]*)"|[A-Z_]+))?\)|\b(TO)\b', part)
        fields = [("to", "RANGES", "false", "") if to else
                  (field.lower(), kind, "true" if how == "NEED" else "false", standard)
                  for how, field, kind, standard, to in rows]
        sort = re.search(r"\b(MADE|STORED|LOGIN|AMBIENT|HIDDEN),", part).group(1)
        if sort == "HIDDEN":  # declared by others, never by hand
            continue
        found[spoken(re.match(r"\w+", part).group(0))] = (sort, fields)
    return found


def spoken(kind):
    """A kind as the configuration calls it."""
    return re.search(r'\[%s\] = "(\w+)"' % kind, tree.read("rules/compile/derived_spec.c")).group(1)


def kind_words(kind, field):
    text = tree.read("rules/compile/config_mint_word.c")
    for spelt, of, words in re.findall(r"\{(DERIVED_\w+),\s*SPEC_(\w+),\s*\{(.*?)\}\}", text, re.S):
        if spoken(spelt) == kind and of.lower() == field:
            return re.findall(r'"([^"]*)"', words)
    raise KeyError("no words of %s: %s" % (kind, field))


def kind_properties(name, own):
    """Of a kind, without what stands beside `auth`; own: its schema now, for what is written by hand."""
    sort, fields = kinds()[name]
    properties, needed = {}, []
    for field, kind, must, standard in fields:
        if sort == "LOGIN" and field in ("address", "namespace", "to"):
            continue
        value = {"TEXT": TEXT, "LIST": FORMS["strings"], "RANGES": FORMS["strings"], "URL": pattern("^https://"),
                 "PLACE": pattern("^https?://"),
                 "SECONDS": {"type": "integer", "minimum": 900, "maximum": 43200},
                 "MINUTES": {"type": "integer", "minimum": 1, "maximum": 1440},
                 "AUTH": own.get(field)}.get(kind, FORMS["name"])
        if kind == "WORD":
            value = {"enum": kind_words(name, field)}
        if standard and "$" not in standard and kind not in ("URL", "PLACE", "AUTH"):
            value = dict(value, default=int(standard) if kind in ("SECONDS", "MINUTES") else standard)
        properties[field] = value
        needed += [field] if must == "true" else []
    return properties, needed


# ---- what is made of them ----

def made_of(comment, node):
    """The properties of an object of the schema, and which are required; None: it is written by hand."""
    own = node.get("properties", {})
    if comment.startswith(COMMENT + "kind "):
        return kind_properties(comment[len(COMMENT + "kind "):], own)
    keys, properties = tables()[comment[len(COMMENT):]], {}
    for k in keys:
        if k.schema is None and k.name not in own:
            raise SystemExit("the schema's object '%s' has no '%s' yet: write what its value is" % (comment, k.name))
        value = own[k.name] if k.schema is None else k.schema
        value = {name: v for name, v in value.items() if name != "description"}
        properties[k.name] = dict({"description": k.meaning} if k.meaning else {}, **value)
    return properties, [k.name for k in keys if k.standard == "required"]


def schema(node):
    """The schema, with what is made of the tables made anew. A key whose value is written by hand has to be there."""
    if isinstance(node, list):
        return [schema(x) for x in node]
    if not isinstance(node, dict):
        return node
    comment = node.get("$comment", "")
    if isinstance(comment, str) and comment.startswith(COMMENT):
        properties, needed = made_of(comment, node)
        node = dict(node, properties=properties)
        if needed:
            node["required"] = needed
    return {k: schema(v) for k, v in node.items()}


def commented(node):
    """Names of the tables that the schema has objects of."""
    if isinstance(node, list):
        return [c for x in node for c in commented(x)]
    if not isinstance(node, dict):
        return []
    here = node.get("$comment", "")
    return ([here[len(COMMENT):]] if isinstance(here, str) and here.startswith(COMMENT) else []) + \
        [c for v in node.values() for c in commented(v)]


def manual(text):
    """The manual, with its marked tables made anew: rows are made, heads and the order of the rows stay."""
    have, out, rest = tables(), [], text.split("\n")
    while rest:
        line = rest.pop(0)
        out.append(line)
        m = MARK.fullmatch(line)
        if not m:
            continue
        while not rest[0].startswith("|"):
            out.append(rest.pop(0))
        heads = [c.strip() for c in rest[0].split("|")[1:-1]]
        out += [rest.pop(0), rest.pop(0)]
        order = []
        while rest and rest[0].startswith("|"):
            order += re.match(r"\| `(\w+)`|", rest.pop(0)).groups()
        shown = [k for k in have[m.group(1)] if k.meaning]
        for before, k in zip([None] + shown, shown):
            if k.name not in order:  # a new one: behind the one that it stands behind in the table
                order.insert(order.index(before.name) + 1 if before else 0, k.name)
        for k in sorted(shown, key=lambda k: order.index(k.name)):
            cells = ["`%s`" % k.name] + [k.cell(h) for h in heads[1:]]
            out.append("".join("| %s " % c if c else "| " for c in cells) + "|")
    return "\n".join(out)


def marked(text):
    return MARK.findall(text)
