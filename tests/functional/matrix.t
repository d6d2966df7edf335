#!/usr/bin/python3 -B
"""The client matrix: real clients in a sandbox × HTTP/1.1, HTTP/2, server-sent events, WebSocket ×
transparent, proxy variables; the credential of each cell's request is checked at its origin. The table
is doc/clients.md: the outcome must be what stands there; --write writes it."""
import base64
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, h2_frames, index, nginx, origin, peer, scan, scene, shapes, tap  # noqa: E402

DOC = os.path.join(durward.TOP, "doc", "clients.md")
FIGURES = "\n## Figures\n"  # from here on it is written by hand
COLUMNS = {"h1": "HTTP/1.1", "h2": "HTTP/2", "sse": "server-sent events", "ws": "WebSocket"}
WORDS = "".join(shapes.WORDS)
NO_WS, NO_STREAM = "it speaks no WebSocket", "it reads whole replies only"
PLAIN = "it speaks HTTP/1.1 only"
# client -> (what it is, why a column does not apply)
CLIENTS = {
    "curl": ("curl", {"ws": "built without it on Debian 12"}),
    "git": ("git over https", {"sse": NO_STREAM, "ws": NO_WS}),
    "gh": ("gh, GitHub's command line", {"sse": NO_STREAM, "ws": NO_WS}),
    "requests": ("Python requests", {"h2": PLAIN, "ws": NO_WS}),
    "httpx": ("Python httpx", {"ws": NO_WS}),
    "openai-python": ("OpenAI's library for Python", {"ws": "not in the version tested"}),
    "openai-node": ("OpenAI's library for Node", {"h2": PLAIN}),
    "fetch": ("Node's fetch and WebSocket", {"h2": PLAIN}),
    "bun": ("Bun's fetch and WebSocket", {"h2": PLAIN}),
    "deno": ("Deno's fetch and WebSocket", {}),
    "go": ("Go net/http", {"ws": NO_WS}),
    "grpc-python": ("gRPC for Python", {c: "gRPC is HTTP/2" for c in ("h1", "sse", "ws")}),
    "grpc-go": ("gRPC for Go", {c: "gRPC is HTTP/2" for c in ("h1", "sse", "ws")}),
    "pip": ("pip", {"h2": PLAIN, "sse": NO_STREAM, "ws": NO_WS}),
    "uv": ("uv", {"h2": "it says nowhere which it speaks", "sse": NO_STREAM, "ws": NO_WS}),
    "npm": ("npm", {"h2": PLAIN, "sse": NO_STREAM, "ws": NO_WS}),
    "java": ("Java's HttpClient", {}),
}
TOP = """# Clients

Each cell is a real run of `tests/functional/matrix.t` inside `durward run`: the first word transparent (no proxy
variable is set), the second with the proxy variables set (Node's fetch, its WebSocket and npm's scripts may pay no
heed to them: they are captured all the same). In each the origin must have seen the right credential, which the
sandbox never had. HTTP/2 is what the client speaks with the gate. Written by `tests/functional/matrix.t --write`.

"""


class Origins:
    """Everything that the clients ask, and which credential came with which mark."""

    def __init__(self, t, s, python):
        bearer = s.openai_credential
        self.right = bearer[1]
        self.h1 = s.add("h1.example.com", origin.needs(bearer, self.who))
        self.stream = s.add("stream.example.com", origin.needs(bearer, shapes.openai(0.15)))
        self.h2 = h2_frames.Nginx(t, s.d.ca, "h2.example.com", "default_type application/json;")
        s.d.origin("h2.example.com", self.h2)
        os.mkdir(os.path.join(self.h2.www, "v1"))
        for path, value in (("who", {"login": "octo"}), ("v1/models", self.models)):
            with open(os.path.join(self.h2.www, path), "w") as f:
                json.dump(value, f)
        self.socket = peer.Peer(t, s, "socket.example.com", [python, peer.path("websocket_server.py")])
        self.grpc = peer.Peer(t, s, "grpc.example.com", [python, peer.path("grpc_server.py")])
        for host in ("h1", "h2", "stream", "grpc"):
            s.rule(allow=host + ".example.com", **{"with": {"bearer": "openai"}})
        s.rule(allow="socket.example.com", websocket=True, **{"with": {"bearer": "openai"}})
        self.stores(t, s)

    models = {"object": "list", "data": [{"id": "octo", "object": "model", "created": 1,
                                          "owned_by": "test"}]}

    def who(self, req, conn):
        conn.reply(req, 200, self.models if req.path == "/v1/models" else {"login": "octo"})

    def stores(self, t, s):
        password = scan.canary("ghp_")
        s.scanner.add("git", password)
        s.d.secret("git", password)
        self.git = nginx.GitServer(t, s.d.ca, "github.com", "x-access-token", password.decode())
        s.d.resolve["github.com"] = self.git.address
        s.rule(allow="github.com/acme/*", git="fetch",
               **{"with": {"basic": {"user": "x-access-token", "password": "git"}}})
        basic = "Basic " + base64.b64encode(b"__token__:" + s.openai_secret).decode()
        self.pypi = s.add("pypi.example.com", origin.needs(("Authorization", basic), index.pypi()))
        s.rule(allow="pypi.example.com",
               **{"with": {"basic": {"user": "__token__", "password": "openai"}}})
        self.npm = s.add("npm.example.com", origin.needs(s.openai_credential,
                                                         index.npm("npm.example.com")))
        s.rule(allow="npm.example.com", **{"with": {"bearer": "openai"}})

    def marked(self, mark):
        """The credential of each request with that mark."""
        found = [[v for _, v in r.credentials()] for o in (self.h1, self.stream) for r in o.requests
                 if mark in r.target]
        found += [[x["auth"]] for x in self.h2.records() if mark in x["uri"] and x["http"] == "HTTP/2.0"]
        found += [[x["authorization"]] for p in (self.socket, self.grpc) for x in list(p.lines)
                  if x["event"] == "call" and x["mark"] == mark or mark in x.get("path", "")]
        return found

    def credential(self, client, column, proxy, mark, before):
        """Did the origin of this cell see requests, each with the right credential?"""
        if client == "git":
            new = self.git.records()[before["git"]:]
            return bool(new) and all(x["auth"] == self.git.basic for x in new)
        if client in before:
            o = {"gh": self.github, "pip": self.pypi, "uv": self.pypi, "npm": self.npm}[client]
            new = o.requests[before[client]:]
            return bool(new) and all(len(r.credentials()) == 1 and r.status < 300 for r in new)
        tap.wait_for(lambda: self.marked(mark), 3)
        got = self.marked(mark)
        return bool(got) and all(x == [self.right] for x in got)

    def counts(self):
        return {"git": len(self.git.records()), "gh": len(self.github.requests),
                "pip": len(self.pypi.requests), "uv": len(self.pypi.requests), "npm": len(self.npm.requests)}


class Runs:
    """-> {column: [version, answer, spread]} of one client."""

    def __init__(self, box, proxy, mark):
        self.box, self.proxy, self.mark, self.folder = box, proxy, mark, durward.clients_dir()
        self.trouble, self.outputs = "", []

    def sh(self, command, **kw):
        status, out, err = self.box.sh(command, proxy=self.proxy, timeout=60, **kw)
        self.outputs += [out, err]
        if status != 0:
            self.trouble += out + err
        return status, out, err

    def program(self, command, **kw):
        status, out, _ = self.sh(command, **kw)
        return json.loads(out) if status == 0 else {}

    def curl(self):
        got = {}
        for column, option in (("h1", "--http1.1"), ("h2", "--http2")):
            _, out, _ = self.sh("curl -sS %s -w '\\n%%{http_version}' 'https://%s.example.com/who?cell=%s-%s'" %
                                (option, column, self.mark, column))
            body, _, version = out.rpartition("\n")
            got[column] = [version, "octo" if '"octo"' in body else body, 0]
        status, out, _ = self.sh(
            "curl -sSN --http2 -d '{\"stream\":true}' 'https://stream.example.com/v1/chat/completions?cell=%s-sse'"
            " | %s %s/events.py" % (self.mark, durward.PYTHON, durward.INSIDE))
        got["sse"] = json.loads(out) if status == 0 else ["", out, 0]
        return got

    def git(self):
        got = {}
        for column, version in (("h1", "HTTP/1.1"), ("h2", "HTTP/2")):
            _, out, err = self.sh("rm -rf ~/clone; GIT_TRACE_CURL=1 git -c http.version=%s clone "
                                  "https://github.com/acme/repo.git ~/clone && cat ~/clone/README" % version)
            got[column] = [version if version + " 200" in err else "another", "octo"
                           if "hello from the repository" in out else out, 0]
        return got

    def gh(self):
        got = {}
        for column, debug in (("h1", "http2client=0"), ("h2", "http2client=1")):
            _, out, err = self.sh("gh api user --jq .login", env={
                "GODEBUG": debug, "GH_DEBUG": "api", "GH_NO_UPDATE_NOTIFIER": "1"})
            version = [x for x in ("HTTP/1.1", "HTTP/2.0") if x + " 200" in err]
            got[column] = ["".join(version), out.strip(), 0]
        return got

    def python(self, name):
        return self.program("%s/venv/bin/python %s/matrix.py %s %s" % (
            self.folder, durward.INSIDE, name, self.mark))

    def script(self, runtime, name):
        return self.program("%s %s/matrix.mjs %s %s %s/node_modules" %
                            (runtime, durward.INSIDE, name, self.mark, self.folder))

    def node(self, name):
        return self.script("node --no-warnings --experimental-websocket", name)

    def bun(self):
        return self.script(self.folder + "/node_modules/.bin/bun", "fetch")

    def deno(self):
        return self.script(self.folder + "/node_modules/.bin/deno run --quiet --allow-all", "fetch")

    def go(self):
        return self.program("%s/bin/matrixget %s" % (self.folder, self.mark))

    def grpc_go(self):
        status, out, _ = self.sh("%s/bin/grpcclient grpc.example.com unary %s-h2" % (self.folder, self.mark))
        return {"h2": ["HTTP/2", json.loads(out).get("unary"), 0]} if status == 0 else {}

    def installed(self, install):
        """What a Python module says that `install` is told to put into a folder."""
        _, out, _ = self.sh(
            "rm -rf ~/lib; %s/venv/bin/%s --index-url https://pypi.example.com/simple/ --target ~/lib %s && "
            "PYTHONPATH=~/lib /usr/bin/python3 -c 'import acme_widget; print(acme_widget.ANSWER)'" %
            (self.folder, install, index.NAME))
        return {"h1": ["", "octo" if out.strip().endswith("42") else out, 0]}

    def pip(self):
        return self.installed("python -m pip install -q --disable-pip-version-check --no-cache-dir --no-input")

    def uv(self):
        return self.installed("uv pip install -q --no-cache --python /usr/bin/python3")

    def npm(self):
        _, out, _ = self.sh(
            "rm -rf ~/npm; mkdir ~/npm; cd ~/npm; echo '{\"name\":\"a\",\"version\":\"1.0.0\"}' >package.json; "
            "npm install --silent --no-audit --no-fund --no-update-notifier --fetch-retries=0 --cache ~/npm/c "
            "--registry https://npm.example.com/ %s && node -e 'console.log(require(\"acme-widget\"))'" % index.NAME)
        return {"h1": ["", "octo" if out.strip().endswith("42") else out, 0]}

    def java(self):
        return self.program("java -Xshare:auto %s/Matrix.java %s 2>/tmp/java.err || { cat /tmp/java.err; false; }"
                            % (durward.INSIDE, self.mark))

    def run(self, client):
        table = {"curl": self.curl, "git": self.git, "gh": self.gh, "go": self.go, "pip": self.pip,
                 "uv": self.uv, "npm": self.npm, "bun": self.bun, "deno": self.deno, "java": self.java, "grpc-go": self.grpc_go}
        if client in table:
            return table[client]()
        kind, _, where = client.partition("-")
        return self.node(kind) if client == "fetch" or where == "node" else self.python(kind)


def missing(client):
    """Why a client cannot run on this machine, or None."""
    folder = durward.clients_dir()
    wants = {"go": folder + "/bin/matrixget", "grpc-go": folder + "/bin/grpcclient"}.get(client)
    if wants and not os.path.exists(wants):
        return "it was not built: is Go installed?"
    program = {"fetch": "node", "openai-node": "node"}.get(client, client)
    if program in ("curl", "git", "gh", "node", "npm", "java") and not shutil.which(program):
        return program + " is not installed"
    return None


def outcome(column, got, credential):
    """What the table says of one cell."""
    version, answer, spread = got
    if answer != (WORDS if column == "sse" else "octo"):
        return "NO: another answer"
    if column == "h1" and "2" in version or column == "h2" and "2" not in version:
        return "NO: it spoke " + version
    if column == "sse" and spread < 0.12:
        return "NO: the events came together"
    return "yes" if credential else "NO: the credential at the origin"


def read_doc():
    """{(client, column): text} of the table in the manual."""
    found = {}
    try:
        with open(DOC) as f:
            lines = f.read().partition("\nn/a:\n")[0].splitlines()
    except OSError:
        return found
    rows = [[c.strip() for c in x.strip().strip("|").split("|")] for x in lines if x.startswith("| ")]
    names = {what: client for client, (what, _) in CLIENTS.items()}
    for row in rows:
        if row[0] in names:
            found.update({(names[row[0]], c): text for c, text in zip(COLUMNS, row[1:])})
    return found


def write_doc(table):
    lines = ["| client | " + " | ".join(COLUMNS.values()) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for client, (what, _) in CLIENTS.items():
        lines.append("| %s | %s |" % (what, " | ".join(table[client, c] for c in COLUMNS)))
    reasons = ["- %s, %s: %s" % (what, COLUMNS[c], why) for what, not_for in CLIENTS.values()
               for c, why in not_for.items()]
    with open(DOC) as f:
        figures = f.read().partition(FIGURES)
    with open(DOC, "w") as f:
        f.write(TOP + "\n".join(lines) + "\n\nn/a:\n\n" + "\n".join(reasons) + "\n" + figures[1] + figures[2])


def cells(t, box, origins, client, outputs):
    """-> {column: "yes, yes"} of one client."""
    found = {c: [] for c in COLUMNS if c not in CLIENTS[client][1]}
    for proxy in (False, True):
        mark = "%s-%s" % (client, "proxy" if proxy else "direct")
        before = origins.counts()
        runs = Runs(box, proxy, mark)
        try:
            got = runs.run(client)
        except ValueError as e:
            got, runs.trouble = {}, runs.trouble + str(e)
        outputs += runs.outputs
        for column in found:
            said = "NO: it failed"
            if column in got:
                said = outcome(column, got[column], origins.credential(
                    client, column, proxy, mark + "-" + column, before))
            found[column].append(said)
            t.eq(said, "yes", "%s, %s, %s" % (client, COLUMNS[column],
                                              "with proxy variables" if proxy else "transparent")) or \
                t.diag("%s %s" % (got.get(column), runs.trouble[-2000:]))
    return {c: ", ".join(x) for c, x in found.items()}


def main(t):
    folder = durward.clients_dir()
    python = os.path.join(folder, "venv/bin/python")
    if not os.path.exists(python):
        raise tap.Skip("the client libraries are not there: run tests/functional/clients/setup")
    s = scene.Scene(t)
    origins = Origins(t, s, python)
    origins.github = s.github
    box = durward.Sandbox(s.d, binds=durward.client_binds("venv", "node_modules", "bin"))
    table, outputs, doc = {}, [], read_doc()
    only = [x for x in sys.argv[1:] if x in CLIENTS] or list(CLIENTS)
    for client in only:
        table.update({(client, c): "n/a" for c in CLIENTS[client][1]})
        why = missing(client)
        if why:
            t.skip(client, why)
            continue
        got = t.part(cells, t, box, origins, client, outputs) or {}
        table.update({(client, c): text for c, text in got.items()})
    scan.scan_sandbox(t, box, s.scanner)
    outputs.append(box.close()[1])
    s.clean(outputs, "the matrix")
    whole = all((c, k) in table for c in CLIENTS for k in COLUMNS)
    if "--write" in sys.argv:
        t.ok(whole, "every cell is known")
        write_doc(table) if whole else None
    else:
        differs = ["%s, %s: %s, the manual says %s" % (c, k, text, doc.get((c, k)))
                   for (c, k), text in table.items() if doc.get((c, k)) != text]
        t.ok(not differs, "doc/clients.md says the same", *differs)
    for client in only:
        t.diag("%-14s %s" % (client, "  ".join("%-9s" % table.get((client, c), "skip") for c in COLUMNS)))


tap.run(main, timeout=400)
