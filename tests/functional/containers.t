#!/usr/bin/python3 -B
"""Containers inside a sandbox (`nested: true`) as programs of others use them, with an engine inside: podman's service.
docker compose, Testcontainers, builds of applications by the presets of registries, builds with a secret, an agent's own sandbox,
and Playwright. Each request is in the log, an unlisted host is refused in the innermost container, and no credential is
inside. ./runtests tries a part; `make containers-inside` all, or those that INSIDE names."""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, engine, images, index, person, scan, scene, tap  # noqa: E402

HOST, WHEELS, PACKAGES = "deps.example.com", "wheels.corp.example", "packages.corp.example"
SOURCES = os.path.join(durward.INSIDE, "containers")
ENGINE = "export DOCKER_HOST=unix:///tmp/engine TESTCONTAINERS_RYUK_DISABLED=true DOCKER_BUILDKIT=0 PYTHONDONTWRITEBYTECODE=1\n"


class Box:
    """A sandbox with an engine inside, and what was said in it."""

    def __init__(self, t, name, engine_inside=True):
        self.t, self.said = t, []
        self.scene = s = scene.Scene(t, name=name)
        s.d.policy("nest", s.rules, s.env)
        s.d.policies["nest"]["sandbox"] = {"nested": True}
        self.engine_inside = engine_inside

    def begin(self):
        self.scene.d.serve()
        self.c = api.Api(self.scene.d.socket, timeout=260)
        self.id = self.c.create(policy="nest")["id"]
        if self.engine_inside:
            self.sh("setsid podman system service -t 0 $DOCKER_HOST >/tmp/engine.log 2>&1 </dev/null & for i in $(seq 200); do "
                    "[ -S /tmp/engine ] && exit 0; sleep 0.1; done; cat /tmp/engine.log; exit 1")
        return self

    def sh(self, script, timeout=120):
        code, text = self.c.sh(self.id, ENGINE + script, timeout=timeout)
        text = text.decode("utf-8", "replace")
        self.said.append(text)
        return code, text

    def put(self, path, data):
        self.c.write(self.id, path, data if isinstance(data, bytes) else data.encode())

    def image(self, name, files, containerfile="", **more):
        """localhost/NAME:1 of these files of the sandbox's, with what a Containerfile says besides."""
        folder = "/workspace/image-" + name
        self.put(folder + "/list", "\n".join(x.lstrip("/") for x in files))
        for file, text in dict(more, Containerfile=images.BASE_FILE + containerfile).items():
            self.put(folder + "/" + file, text)
        code, said = self.sh("(cd %s && mkdir -p empty/tmp && tar -chf /workspace/files.tar -C / -T list -C $PWD/empty tmp && podman import -q "
                             "/workspace/files.tar localhost/files:1 && rm -r /workspace/files.tar list empty && podman build -q -t "
                             "localhost/%s:1 .) 2>&1" % (folder, name))
        return self.t.ok(code == 0, "an image of %s is made inside" % name, said)

    def servers(self):
        home = images.postgres_home()
        return self.image("redis", images.redis(), images.REDIS_FILE, start=images.REDIS_START) and self.image(
            "postgres", images.postgres(), images.POSTGRES_FILE % {"bin": home + "/bin"}, start=images.POSTGRES_START)

    def unpack(self, top, folder, *names):
        """A folder of this machine, or these names in it, becomes one inside: nothing can be bound into such a sandbox."""
        frames = self.c.frames(self.id, command="mkdir -p %s && tar -xf - -C %s && cat" % (folder, folder))  # to the end, as the sender waits for it
        with subprocess.Popen(["tar", "-chf", "-", "--exclude=__pycache__", "-C", top, *(names or ["."])], stdout=subprocess.PIPE) as tar:
            for data in iter(lambda: tar.stdout.read(1 << 16), b""):
                frames.send(0, data)
        frames.send(0)
        _, said, end = frames.finish()
        frames.close()
        return self.t.ok(end["exit_code"] == 0, "%s comes into the sandbox" % folder, end, said)

    def stream(self, script, *args):
        """What a script of inside/ writes, as scan.scan_sandbox reads it."""
        self.put("/workspace/" + script, open(os.path.join(durward.INSIDE, script), "rb").read())
        frames = self.c.frames(self.id, command="python3 /workspace/%s %s" % (script, " ".join(args)))
        while True:
            kind, data = frames.receive()
            if kind == 3:
                break
            if kind == 1:
                yield data
        frames.close()

    def end(self, origins=()):
        """Each request is in the log once, and no credential anywhere."""
        s = self.scene
        s.d.check_pairs(self.t, [s.plain, s.github, s.openai, *origins], "containers")
        scan.scan_sandbox(self.t, self, s.scanner, share="0/256")
        self.c.delete(self.id)
        self.c.close()
        self.t.eq(s.d.stop(), 0, "the daemon ends well")
        s.clean(self.said, "containers")


def lacks(t, what, *programs):
    """Is one of these missing? Then it is said."""
    for p in programs:
        if not (shutil.which(p) if "/" not in p else os.path.exists(p)):
            t.skip(what, p + " is not installed")
            return True
    return False


def no_servers(t, what):
    if not images.postgres_home():
        t.skip(what, "no PostgreSQL is installed")
        return True
    return lacks(t, what, images.REDIS)


# As its users write it: nothing in it says that it runs in a sandbox.
COMPOSE = """services:
  redis:
    image: localhost/redis:1
    ports: ["16379:6379"]
  db:
    image: localhost/postgres:1
    environment: { POSTGRES_PASSWORD: example, POSTGRES_DB: shop }
    ports: ["5432"]
    healthcheck: { test: ["CMD", "pg_isready", "-q", "-h", "127.0.0.1"], interval: 1s, retries: 60 }
  web:
    image: localhost/web:1
    depends_on: { redis: { condition: service_started }, db: { condition: service_healthy } }
    environment: [GITHUB_TOKEN]
    command: ["sh", "/web"]
    networks: { default: {}, back: { aliases: [front] } }
  other:
    image: localhost/web:1
    command: ["sleep", "600"]
    networks: [apart]
networks: { back: {}, apart: {} }
"""
WEB = """i=0
until printf 'PING\\r\\n' | nc -w 1 redis 6379 2>/dev/null | grep PONG; do i=$((i + 1)); [ $i -lt 100 ] || exit 1; sleep 0.2; done
nc -w 1 db 5432 </dev/null && echo database
printf 'PING\\r\\n' | nc -w 1 host.docker.internal 16379 | tr P M
nc -w 1 other 1 </dev/null 2>&1
curl -sS https://deps.example.com/compose
curl -sS -H "Authorization: Bearer $GITHUB_TOKEN" https://api.github.com/user
curl -sS -m 5 https://evil.example.com/ || echo refused $?
"""


def compose(t):
    """Three services; one asks the other two, an allowed origin, one with a credential, and an unlisted host."""
    if lacks(t, "docker compose", "docker-compose") or no_servers(t, "docker compose"):
        return
    b = Box(t, "compose").begin()
    b.servers()
    b.image("web", images.paths(), "COPY web /web\n", web=WEB)
    b.put("/workspace/c/docker-compose.yml", COMPOSE)
    code, said = b.sh("cd /workspace/c && docker-compose --no-ansi up --exit-code-from web 2>&1", 100)
    t.ok(code == 0, "docker compose up: the last service ends well", said)
    wanted = ("+PONG", "database\n", "+MONG", "bad address 'other'", "database system is ready", '"/compose"', "octo", "refused 6")
    t.eq([x for x in wanted if x not in said], [], "docker compose: a service asks Redis, PostgreSQL, an origin, one with a credential of a "
         "rule, and is refused an unlisted host") or t.diag(said)
    t.eq([r.target for r in b.scene.plain.requests], ["/compose"], "the origin had that request")
    code, said = b.sh("cd /workspace/c && docker-compose --no-ansi down 2>&1; podman ps -aq | wc -l", 60)
    t.ok(said.endswith("\n0\n"), "docker compose down leaves none", said)
    b.end()


# Language -> (what its clients' folder must have, what runs the example inside)
EXAMPLES = {
    "python": ("venv/lib", "env PYTHONPATH=$(echo venv/lib/python3.*/site-packages) python3 containers.py"),
    "node": ("node_modules/testcontainers", "node containers.js"),
    "go": ("go-bin/containers", "go-bin/containers"),
    "java": ("java/classes/Containers.class", "java -cp 'java/classes:java/jars/*' Containers"),
}


def example(b, name):
    """Testcontainers' own library starts both servers, speaks with them and ends them."""
    has, run = EXAMPLES[name]
    top, first = os.path.join(durward.clients_dir(), "containers"), has.split("/")[0]
    if not os.path.exists(os.path.join(top, has)):
        b.t.skip("Testcontainers for " + name, "its library is not there: run tests/functional/clients/containers/setup")
        return
    before = len(b.scene.plain.requests)
    b.unpack(os.path.join(top, first), "/workspace/clients/" + first)
    for script in ("containers.py", "containers.js"):
        with open(os.path.join(durward.INSIDE, script), "rb") as f:
            b.put("/workspace/clients/" + script, f.read())
    code, said = b.sh("cd /workspace/clients && timeout 170 %s 2>&1" % run, 180)
    lacking = [x for x in ("redis value\n", "postgres PostgreSQL ", '"/%s"' % name, "Could not resolve host: evil") if x not in said]
    b.t.ok(code == 0 and not lacking, "Testcontainers for %s: Redis and PostgreSQL answer; a container asks by the gate, and is refused an "
           "unlisted host" % name, code, lacking, said)
    b.t.eq([r.target for r in b.scene.plain.requests[before:]], ["/" + name], "the origin had that request")
    code, said = b.sh("podman ps -aq | wc -l; rm -rf /workspace/clients")
    b.t.eq(said, "0\n", "and no container is left")


def testcontainers(t, *names):
    if no_servers(t, "Testcontainers"):
        return
    b = Box(t, "testcontainers").begin()
    b.servers()
    for name in names or EXAMPLES:
        t.part(example, b, name)
    b.end()


# Testcontainers' own tests, as far as a registry has them: for Go, in its modules. The names that they ask for, of images made here.
SUITES = {
    "redis": ["redis:7"],
    "postgres": ["postgres:16-alpine", "postgres:15.2-alpine", "timescale/timescaledb:2.1.0-pg11", "postgis/postgis:12-3.0", "pgvector/pgvector:pg16"],
}


def suite(b, name):
    top = os.path.join(durward.clients_dir(), "containers/go-suites", name)
    if not os.path.exists(os.path.join(top, "suite")):
        b.t.skip("Testcontainers' own tests of " + name, "they are not there: run tests/functional/clients/containers/setup")
        return
    b.unpack(top, "/workspace/suite")
    b.sh("for i in %s; do curl -s --unix-socket /tmp/engine -X POST \"http://engine/images/localhost%%2F%s:1/tag?repo=${i%%:*}&tag=${i##*:}\"; done" % (
        " ".join(SUITES[name]), name))
    # a test that fails may wait for a minute
    code, said = b.sh("cd /workspace/suite && timeout 500 ./suite -test.v 2>&1", 510)
    results = re.findall(r"^ *--- (\w+): (\S+)", said, re.M)
    passed = [test for result, test in results if result == "PASS"]
    b.t.eq([test for result, test in results if result == "FAIL"], [], "Testcontainers' own tests of %s: none fails" % name) or b.t.diag(said[-12000:])
    b.t.ok(code == 0 and len(passed) > 5, "and %d pass" % len(passed), code, said[-2000:])
    # one of them makes a container that cannot start, and leaves it
    code, said = b.sh("podman ps -q | wc -l; podman rm -fa >/dev/null; rm -rf /workspace/suite; ps -A -o comm | grep -c durward-net")
    b.t.eq(said, "0\n0\n", "no container runs, and no network is left")


def suites(t):
    if no_servers(t, "Testcontainers' own tests"):
        return
    b = Box(t, "suites").begin()
    b.servers()
    for name in SUITES:
        t.part(suite, b, name)
    b.end()


PYTHON_FILE = """FROM localhost/python:1
WORKDIR /app
COPY requirements.txt app.py ./
RUN python3 $(echo /usr/share/python-wheels/pip-*.whl)/pip install -q --no-cache-dir --index-url https://%s/simple -r requirements.txt
RUN curl -sS -m 5 https://evil.example.com/ || echo refused $?
CMD ["python3", "app.py"]
""" % WHEELS
PYTHON_APP = """import urllib.request
import acme_widget
print(acme_widget.ANSWER, urllib.request.urlopen("https://deps.example.com/app-python").read().decode())
"""
NODE_FILE = """FROM localhost/node:1
WORKDIR /app
COPY package.json app.js ./
RUN node %s install --registry https://%s/ --no-audit --no-fund --no-update-notifier
RUN curl -sS -m 5 https://evil.example.com/ || echo refused $?
CMD ["node", "app.js"]
""" % (images.npm(), PACKAGES)
NODE_APP = """const widget = require("acme-widget");
fetch("https://deps.example.com/app-node").then(r => r.text()).then(text => console.log(widget, text));
"""
NODE_PACKAGE = '{ "private": true, "dependencies": { "acme-widget": "^1.0.0" } }'


def application(b, name, base, files, asked, origin):
    """An application whose dependency comes by a preset: built, and run."""
    if not b.image(name, base()):
        return
    for file, text in files.items():
        b.put("/workspace/app-%s/%s" % (name, file), text)
    code, said = b.sh("podman build -t app-%s /workspace/app-%s 2>&1" % (name, name), 120)
    b.t.ok(code == 0 and "refused 6" in said, "podman build of an application of %s; an unlisted host is refused in it" % name, said)
    paths = [(q.method, q.path) for q in origin.requests]
    b.t.ok(paths and all(("GET", p) in paths for p in asked), "its dependency comes by the preset", paths)
    code, said = b.sh("podman run --rm app-%s 2>&1" % name, 60)
    b.t.ok(code == 0 and said.startswith("42 ") and '"/app-%s"' % name in said, "it runs, and asks by the gate", said)


def builds(t):
    b = Box(t, "builds", engine_inside=False)
    s = b.scene
    wheels, packages = s.add(WHEELS, index.pypi()), s.add(PACKAGES, index.npm(PACKAGES))
    s.rules += [{"use": "pip", "preset_hosts": {"index": WHEELS}}, {"use": "npm", "preset_hosts": {"index": PACKAGES}}]
    b.begin()
    if not glob.glob("/usr/share/python-wheels/pip-*.whl"):
        t.skip("an application of python", "no wheel of pip is installed (python3-venv)")
    else:
        t.part(application, b, "python", images.python, {"Containerfile": PYTHON_FILE, "requirements.txt": index.NAME + "\n", "app.py": PYTHON_APP},
               ["/simple/%s/" % index.NAME, "/files/" + index.wheel()[0]], wheels)
    if not lacks(t, "an application of node", images.NODE, "/usr/bin/npm"):
        t.part(application, b, "node", images.node, {"Containerfile": NODE_FILE, "package.json": NODE_PACKAGE, "app.js": NODE_APP},
               ["/" + index.NAME, "/%s/-/%s-%s.tgz" % (index.NAME, index.NAME, index.VERSION)], packages)
    t.part(secret, b)
    t.part(buildkit, b)
    b.end([wheels, packages])


SECRET_FILE = """FROM localhost/web:1
RUN --mount=type=secret,id=token curl -sS -H "Authorization: Bearer $(cat /run/secrets/token)" https://api.github.com/user >/who
RUN curl -sS -m 5 https://evil.example.com/ || echo refused $?
"""


def secret(b):
    """A build's secret is the placeholder; it is there for one command, and in nothing that is kept."""
    b.image("web", images.paths())
    b.put("/workspace/secret/Containerfile", SECRET_FILE)
    code, said = b.sh("printf %s \"$GITHUB_TOKEN\" >/tmp/token && podman build --secret id=token,src=/tmp/token -t private /workspace/secret 2>&1", 60)
    b.t.ok(code == 0, "podman build --secret", said)
    code, said = b.sh("podman run --rm private sh -c 'cat /who; cat /run/secrets/token'", 60)
    b.t.ok("octo" in said and "gh" + "p_" not in said, "what it asked for is in the image, the secret is not", said)
    code, said = b.sh("podman save -q -o /tmp/saved.tar private && mkdir /tmp/saved && tar -xf /tmp/saved.tar -C /tmp/saved && for f in "
                      "/tmp/saved/*.tar; do tar -xOf $f 2>/dev/null; done | cat - /tmp/saved/*.json >/tmp/all && podman history --no-trunc private "
                      ">>/tmp/all; grep -c 'api.github.com/user' /tmp/all; grep -c -F \"$GITHUB_TOKEN\" /tmp/all; rm -rf /tmp/saved /tmp/saved.tar /tmp/all /tmp/token", 60)
    counts = said.split()
    b.t.ok(len(counts) == 2 and int(counts[0]) > 0 and counts[1] == "0", "no layer and no history has it (the command's text is there: control)", said)


# Debian 12's crun is older than this BuildKit. It knows no --keep, so that a container is gone before it is deleted, and only an
# earlier version of configurations; and a sandbox has no keyrings.
CRUN = """#!/bin/sh
for word; do
    shift
    [ "$word" != delete ] || exit 0
    [ "$before" != --bundle ] || sed -i 's/"ociVersion":"[^"]*"/"ociVersion":"1.0.2"/' "$word/config.json"
    before=$word
    [ "$word" != --keep ] || word=--no-new-keyring
    set -- "$@" "$word"
done
exec /run/durward/crun "$@"
"""
BUILDKITD = """chmod 755 /workspace/buildkit/crun; cd /tmp; setsid /workspace/buildkit/buildkitd --rootless --root /tmp/state --addr unix:///tmp/buildkit \\
    --containerd-worker=false --oci-worker-net host --oci-worker-binary /workspace/buildkit/crun --oci-worker-no-process-sandbox \\
    --oci-worker-snapshotter native >/tmp/buildkit.log 2>&1 </dev/null &
for i in $(seq 200); do [ -S /tmp/buildkit ] && exit 0; sleep 0.1; done; cat /tmp/buildkit.log; exit 1"""
BUILDCTL = """cd /workspace/secret; printf %s "$GITHUB_TOKEN" >/tmp/token; podman save -q --format oci-dir -o /tmp/base localhost/web:1
digest=$(sed 's/.*"digest":"\\(sha256:[0-9a-f]*\\)".*/\\1/' /tmp/base/index.json)
/workspace/buildkit/buildctl --addr unix:///tmp/buildkit build --progress plain --frontend dockerfile.v0 --local context=. --local dockerfile=. \\
    --opt filename=Containerfile --oci-layout base=/tmp/base --opt context:localhost/web:1=oci-layout://base@$digest \\
    --secret id=token,src=/tmp/token --output type=oci,dest=/tmp/out.tar 2>&1"""
LAYERS = """mkdir /tmp/out && tar -xf /tmp/out.tar -C /tmp/out && for f in /tmp/out/blobs/sha256/*; do zcat -f $f; done >/tmp/all; grep -a -c octo /tmp/all
grep -a -c -F "$GITHUB_TOKEN" /tmp/all; rm -rf /tmp/out /tmp/out.tar /tmp/all /tmp/base /tmp/token /workspace/buildkit"""


def buildkit(b):
    """The same by BuildKit itself, which runs in the sandbox."""
    top = os.path.join(durward.clients_dir(), "containers/buildkit")
    if not os.path.exists(os.path.join(top, "buildkitd")):
        b.t.skip("BuildKit", "it is not there: run tests/functional/clients/containers/setup")
        return
    b.unpack(top, "/workspace/buildkit")
    b.put("/workspace/buildkit/crun", CRUN)
    code, said = b.sh(BUILDKITD, 60)
    b.t.eq(code, 0, "buildkitd runs") or b.t.diag(said)
    before = len(b.scene.github.requests)
    code, said = b.sh(BUILDCTL, 60)
    b.t.ok(code == 0 and "refused 6" in said and len(b.scene.github.requests) == before + 1,
           "buildctl build --secret: a request with it, and an unlisted host is refused", code, said)
    code, said = b.sh(LAYERS, 60)
    counts = said.split()
    b.t.ok(len(counts) == 2 and int(counts[0]) > 0 and counts[1] == "0", "no layer and no history has it (the answer is there: control)", said)


CODEX = """mkdir -p /workspace/home/.codex /workspace/work && cd /workspace/work && HOME=/workspace/home /workspace/codex/bin/codex sandbox \\
    -c 'sandbox_mode="workspace-write"' -c sandbox_workspace_write.network_access=%s sh -c 'echo within >here && cat here
    echo out >/etc/out || echo unwritable; echo filters $(sed -n s/Seccomp_filters://p /proc/self/status)
    curl -sS -m 5 https://deps.example.com/codex || echo refused $?; curl -sS -m 5 https://evil.example.com/ || echo refused $?' 2>&1
"""


def codex(t, b):
    """Its own sandbox, by bubblewrap and a filter of its own: with and without a network."""
    found = glob.glob(os.path.join(durward.clients_dir(), "coding/codex/node_modules/@openai/codex-linux-*/vendor/*/bin/codex"))
    if not found:
        t.skip("codex's own sandbox", "codex is not there: run tests/functional/clients/coding/setup")
        return
    b.unpack(os.path.dirname(os.path.dirname(found[0])), "/workspace/codex", "bin/codex", "codex-package.json", "codex-resources/bwrap")
    before = len(b.scene.plain.requests)
    for network, wanted in (("false", "refused 6\n"), ("true", '"/codex"')):
        code, said = b.sh(CODEX % network, 60)
        t.ok(code == 0 and "within\nsh" in said and "unwritable\nfilters 2\n" in said and wanted in said and said.endswith("refused 6\n"),
             "codex's own sandbox, network_access=%s: writes in its folder alone, under a filter more" % network, code, said)
    t.eq([r.target for r in b.scene.plain.requests[before:]], ["/codex"], "the origin had one request, an unlisted host none")
    b.sh("rm -rf /workspace/codex")


def playwright(t, b):
    top = os.path.join(durward.clients_dir(), "containers")
    if lacks(t, "Playwright", "/usr/lib/chromium/chromium", "setpriv"):
        return
    if not glob.glob(os.path.join(top, "venv/lib/python3.*/site-packages/playwright")):
        t.skip("Playwright", "its library is not there: run tests/functional/clients/containers/setup")
        return
    b.unpack(os.path.join(top, "venv"), "/workspace/venv")
    with open(os.path.join(durward.INSIDE, "browser.py"), "rb") as f:
        b.put("/workspace/browser.py", f.read())
    code, said = b.sh("chmod -R a+rX /workspace; mkdir -p /tmp/home && chown 1000:1000 /tmp/home && cd /tmp/home && HOME=/tmp/home PYTHONPATH=$(echo /workspace/venv/lib/"
                      "python3.*/site-packages) timeout 100 setpriv --reuid 1000 --regid 1000 --clear-groups python3 /workspace/browser.py 2>&1", 110)
    t.ok(code == 0 and '"target": "/playwright"' in said and "refused" in said and "reached" not in said,
         "Playwright's Chromium, its sandbox on, opens a page by the gate, and none of an unlisted host", code, said)
    shut = re.search(r"^renderer (\d+) (\d+)$", said, re.M)
    t.ok(shut and int(shut[1]) >= 2 and int(shut[2]) >= 2, "its renderers have process numbers and a filter of their own", said[-1500:])
    t.ok("/playwright" in [r.target for r in b.scene.plain.requests], "the origin had that request")
    b.sh("rm -rf /workspace/venv /tmp/home")


def agents(t):
    b = Box(t, "agents", engine_inside=False).begin()
    t.part(codex, t, b)
    t.part(playwright, t, b)
    b.end()


PARTS = {"compose": compose, "testcontainers": testcontainers, "suites": suites, "builds": builds, "agents": agents}
SAMPLE = ("compose",)


def main(t):
    if person.name() == "root":
        person.own_ids(t)
    else:
        raise tap.Skip("programs of the host's and a range of ids: this test needs root")
    for program in ("podman", "crun", "buildah"):
        if not shutil.which(program):
            raise tap.Skip(program + " is not installed")
    words = os.environ.get("INSIDE", "").split()
    languages = [w for w in words if w in EXAMPLES]
    if languages:
        t.part(testcontainers, t, *languages)
    for name in PARTS if words == ["all"] else words or SAMPLE:
        if name not in EXAMPLES:
            t.part(PARTS[name], t)


tap.run(main, timeout=200 if not os.environ.get("INSIDE") else 1500)
