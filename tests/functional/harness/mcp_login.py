"""An MCP server that wants a login, its authorization server, and whoever sits at the browser: doubles whose words can be
changed, one by one, into what an attacker would say."""
import base64
import hashlib
import json
import threading
import urllib.parse
import urllib.request

from . import durward, origin, scan, tap

SERVER, ISSUER = "mcp.example.com", "auth.example.com"
URL = "https://%s/mcp" % SERVER


class Person:
    """Who logs in, by a browser."""

    def __init__(self, t, d):
        self.t, self.d = t, d
        self.scanner = scan.Scanner()

    def get(self, url):
        """A browser follows the authorization server's redirect no further than here; -> where it leads."""
        host, _, rest = url.partition("://")[2].partition("/")
        address = self.d.resolve[host].split(":")
        return browse(address, self.d.ca.pem, host, "/" + rest)

    def login(self, *args, name="acme", url=URL, answer=None, paste=False, **kw):
        """`durward login mcp`, and somebody who agrees. answer(address): where the browser ends in place of that. -> (code, out, err)"""
        self.d.save()
        words = ["login", "mcp", "-c", self.d.conf] + (["--no-browser"] if paste else []) + list(args) + [name, url]
        p = self.t.popen([durward.program()] + words, env=dict(self.d.env, **kw.get("env", {})), cwd=self.d.work, stdin=-1, stdout=-1,
                         stderr=-1, text=True)
        said = []
        self.process = p

        def read():
            for line in p.stderr:
                said.append(line)
        reader = threading.Thread(target=read)
        reader.start()
        found = tap.wait_for(lambda: [x.strip() for x in said if x.startswith("https://") and "response_type=" in x] or
                             (["ended"] if p.poll() is not None else []), 30, 0.02)
        ends = ""
        if found and found != ["ended"] and not kw.get("opened"):
            ends = self.get(found[0])
            ends = answer(ends) if answer else ends
            if paste:
                p.stdin.write(ends + "\n")
                p.stdin.flush()
            else:
                for one in ends if isinstance(ends, list) else [ends]:
                    visit(one)
        p.stdin.close()
        out = p.stdout.read()
        code = p.wait(timeout=60)
        reader.join()
        return code, out, "".join(said)


class Doubles(Person):
    def __init__(self, t, d, life=3600):
        super().__init__(t, d)
        self.life = life
        self.lock = threading.Lock()
        self.reset()
        self.server = origin.Origin(t, d.ca, SERVER, self.on_server)
        self.issuer = origin.Origin(t, d.ca, ISSUER, self.on_issuer)
        d.origin(SERVER, self.server)
        d.origin(ISSUER, self.issuer)
        self.clients, self.codes, self.asked, self.calls = {}, {}, [], []
        self.access, self.refresh = None, None

    def reset(self):
        """As an honest pair says it."""
        base = "https://" + ISSUER
        self.challenge = 'Bearer error="invalid_token", resource_metadata="https://%s/.well-known/oauth-protected-resource/mcp"' % SERVER
        self.resource = {"resource": URL, "authorization_servers": [base], "scopes_supported": ["read", "write"]}
        self.metadata = {
            "issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token",
            "registration_endpoint": base + "/register", "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": True,
            "token_endpoint_auth_methods_supported": ["none"]}
        self.answers = {}  # path -> a function of its own, (req, conn)
        self.token = {}    # members of the token endpoint's answer that are otherwise
        self.register = {}
        self.callback = {}  # parameters of the redirect that are otherwise; None: left out
        self.refused = None

    def secret(self, name, prefix):
        value = scan.canary(prefix)
        self.scanner.add("%s%d" % (name, len(self.scanner.needles)), value)
        return value.decode()

    # ---- the MCP server ----

    def on_server(self, req, conn):
        if req.path in self.answers:
            self.answers[req.path](req, conn)
        elif req.path == "/.well-known/oauth-protected-resource/mcp":
            conn.reply(req, 200 if self.resource else 404, self.resource or {})
        elif req.path != "/mcp":
            conn.reply(req, 404, {})
        elif not self.access or req.get("authorization") != "Bearer " + self.access:
            conn.reply(req, 401, {"error": "invalid_token"}, [("WWW-Authenticate", self.challenge)] if self.challenge else [])
        else:
            body = req.json() if req.body else {}
            self.calls.append(body.get("method"))
            conn.reply(req, 200, {"jsonrpc": "2.0", "id": body.get("id"), "result": {"tools": [], "content": [
                {"type": "text", "text": "called"}]}})

    # ---- its authorization server ----

    def on_issuer(self, req, conn):
        with self.lock:
            if req.path in self.answers:
                self.answers[req.path](req, conn)
            elif req.path == "/.well-known/oauth-authorization-server":
                conn.reply(req, 200, self.metadata)
            elif req.path == "/register":
                self.on_register(req, conn)
            elif req.path == "/authorize":
                self.on_authorize(req, conn)
            elif req.path == "/token":
                self.on_token(req, conn)
            else:
                conn.reply(req, 404, {})

    def on_register(self, req, conn):
        wants = req.json()
        name = "client-%d" % len(self.clients)
        self.clients[name] = dict(wants, secret=self.secret("client", "cs-") if wants["token_endpoint_auth_method"] != "none" else None)
        answer = dict(wants, client_id=name)
        if self.clients[name]["secret"]:
            answer["client_secret"] = self.clients[name]["secret"]
        answer.update(self.register)
        conn.reply(req, 201, answer)

    def on_authorize(self, req, conn):
        q = dict(urllib.parse.parse_qsl(req.query))
        known = self.clients.get(q.get("client_id"), {"redirect_uris": [q.get("redirect_uri")]})
        if q.get("redirect_uri") not in known["redirect_uris"] or q.get("code_challenge_method") != "S256":
            conn.reply(req, 400, {"error": "invalid_request"})
            return
        code = self.secret("code", "code-")
        self.codes[code] = q
        back = {"code": code, "state": q["state"], "iss": self.metadata["issuer"]}
        back.update(self.callback)
        conn.reply(req, 302, b"", [("Location", q["redirect_uri"] + "?" + urllib.parse.urlencode(
            {k: v for k, v in back.items() if v is not None}))])

    def proves(self, req, got):
        """Who asks at the token endpoint, and does he prove it?"""
        name, secret = got.get("client_id"), got.get("client_secret")
        basic = (req.get("authorization") or "").partition("Basic ")[2]
        if basic:
            name, _, secret = base64.b64decode(basic).decode().partition(":")
        known = self.clients.get(name, {"secret": None})
        return known["secret"] == secret and (known["secret"] is None or bool(basic) == (
            known["token_endpoint_auth_method"] == "client_secret_basic"))

    def on_token(self, req, conn):
        got = dict(urllib.parse.parse_qsl(req.body.decode()))
        self.asked.append(got)
        good = self.proves(req, got) and got.get("resource") == URL and not self.refused
        if got.get("grant_type") == "authorization_code":
            q = self.codes.pop(got.get("code"), {})
            hashed = base64.urlsafe_b64encode(hashlib.sha256(got.get("code_verifier", "").encode()).digest()).decode().rstrip("=")
            good = good and q.get("code_challenge") == hashed and q.get("redirect_uri") == got.get("redirect_uri") and q["resource"] == URL
        else:
            good = good and self.refresh and got.get("refresh_token") == self.refresh
        if not good:
            conn.reply(req, 400, {"error": self.refused or "invalid_grant", "error_description": "text of a stranger"})
            return
        self.access, self.refresh = self.secret("access", "at-"), self.secret("refresh", "rt-")
        answer = {"access_token": self.access, "refresh_token": self.refresh, "expires_in": self.life, "token_type": "Bearer"}
        answer.update(self.token)
        conn.reply(req, 200, {k: v for k, v in answer.items() if v is not None})


def visit(url, **headers):
    """The status of a request to the command's listener; None: nobody is there any more."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(urllib.request.Request(url, headers=headers), timeout=10) as r:
            return r.status
    except urllib.error.HTTPError as e:
        return e.code
    except OSError:
        return None


def leads_to(url):
    """Where a request to the command's listener is sent on."""
    import http.client
    host, _, path = url.partition("://")[2].partition("/")
    c = http.client.HTTPConnection(host, timeout=10)
    c.request("GET", "/" + path)
    r = c.getresponse()
    c.close()
    return r.getheader("Location") or ""


def browse(address, ca, host, target):
    import http.client
    import socket
    import ssl
    sock = ssl.create_default_context(cafile=ca).wrap_socket(socket.create_connection((address[0], int(address[1]))), server_hostname=host)
    c = http.client.HTTPConnection(host)
    c.sock = sock
    c.request("GET", target)
    r = c.getresponse()
    r.read()
    c.close()
    return r.getheader("Location") or ""


def state_file(d, name="acme"):
    return "%s/durward/mcp/%s.json" % (d.env["XDG_STATE_HOME"], name)


def kept(d, name="acme"):
    with open(state_file(d, name)) as f:
        return json.load(f)
