#!/usr/bin/python3 -B
"""Presets of package managers take their hosts from the user's and the system's configuration of these programs, never from
a file of the current or a bound directory. The real clients then work inside as they are, against doubles on loopback: they
fetch, and what would publish is refused."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, index, nginx, origin, registry, scan, tap  # noqa: E402

HOST = "packages.corp.example"
REFUSED = "curl -sS -o /dev/null -w 'upload %%{http_code}\\n' -X %s --data-binary x https://%s%s"


def program(name):
    """A tool's own binary, not a wrapper that looks for it in a home folder."""
    if name == "cargo" and shutil.which("rustup"):
        r = subprocess.run(["rustup", "which", "cargo"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        return r.stdout.strip() or None
    found = shutil.which(name)
    return found and os.path.realpath(found)


class World:
    def __init__(self, t, name, handler, host=HOST):
        self.t, self.d = t, durward.Durward(t, name)
        self.home, self.scanner, self.said = self.d.env["HOME"], scan.Scanner(), []
        self.origin = origin.Origin(t, self.d.ca, host, handler)
        self.d.origin(host, self.origin)
        self.d.policy("default", [])

    def secret(self, name, prefix="pw-"):
        value = scan.canary(prefix)
        self.scanner.add(name, value)
        return value.decode()

    def file(self, path, text, mode=0o644):
        whole = os.path.join(self.home, path)
        os.makedirs(os.path.dirname(whole), 0o700, exist_ok=True)
        with open(whole, "w") as f:
            f.write(text)
        os.chmod(whole, mode)
        return whole

    def run(self, preset, script, *flags, **kw):
        self.d.save()
        use = ["--use", preset] if preset else []
        r = self.d.command("run", "-c", self.d.conf, *use, *flags, "--", "sh", "-c", script, timeout=120, **kw)
        self.said += [r.stdout, r.stderr]
        return r

    def wrote(self):
        """What reached the registry and would have changed something there."""
        return [(q.method, q.path) for q in self.origin.requests if q.method not in ("GET", "HEAD")]

    def clean(self):
        for text in self.said:
            self.scanner.search(text, "output")
        self.scanner.tree(self.d.work)
        self.t.ok(not self.scanner.hits, "no credential of the URL is inside or said", *map(str, self.scanner.hits))
        sent = [q.path for q in self.origin.requests if any(v != "Bearer x" for _, v in q.credentials())]
        self.t.ok(not sent, "and no request has one", *sent)


def pip(t):
    w = World(t, "pip", index.pypi())
    password = w.secret("pip")
    w.file(".config/pip/pip.conf", "[global]\nindex-url = https://me:%s@%s/simple\n" % (password, HOST))
    r = w.d.command("preset", "show", "pip")
    w.said += [r.stdout, r.stderr]
    t.ok("#   %s\n" % HOST in r.stdout and w.home + "/.config/pip/pip.conf" in r.stdout and "a credential in the URL" in r.stdout,
         "preset show: the host, the file, and that a credential was left out", r.stdout)
    found = json.loads(w.d.command("preset", "show", "--json", "pip").stdout)["found"]
    t.ok(HOST in found["hosts"] and len(found["left_out"]) >= 1, "the same as JSON", found)
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    if not os.path.exists(python):
        t.skip("pip", "the client libraries are not there: run tests/functional/clients/setup")
        return
    binds = [x for b in durward.client_binds("venv") for x in ("--bind", b)]
    r = w.run("pip", "cat ~/.config/pip/pip.conf; %s -m pip install -q --no-cache-dir --disable-pip-version-check --target ~/x "
              "acme-widget && grep -h ANSWER ~/x/acme_widget.py; " % python + REFUSED % ("POST", HOST, "/legacy/"), *binds)
    t.ok("index-url = https://%s/simple\n" % HOST in r.stdout and "ANSWER = 42" in r.stdout,
         "pip installs by its own configuration", r.stdout, r.stderr)
    t.has(r.stderr, "a credential in the URL was left out", "the run says what was left out")
    t.ok("upload 403" in r.stdout and not w.wrote(), "an upload is refused", r.stdout, w.wrote())
    w.clean()


def npm(t):
    if not shutil.which("npm"):
        t.skip("npm", "npm is not installed")
        return
    w = World(t, "npm", index.npm(HOST))
    w.file(".npmrc", "registry=https://%s/\n@acme:registry=https://%s/acme/\n//%s/:_authToken=%s\n" % (
        HOST, HOST, HOST, w.secret("npm", "npm_")), 0o600)
    script = ("cat ~/.npmrc; mkdir a b; cd a; echo '{}' >package.json; npm install --no-update-notifier acme-widget 2>&1; "
              "node -p 'require(\"acme-widget\")'; cd ../b; echo '{\"name\":\"b\",\"version\":\"1.0.0\"}' >package.json; "
              "echo '//%s/:_authToken=x' >.npmrc; npm publish --no-update-notifier 2>&1 | tail -5" % HOST)
    r = w.run("npm", script)
    t.ok("registry=https://%s/\n@acme:registry=https://%s/acme/\n" % (HOST, HOST) in r.stdout and "\n42\n" in r.stdout,
         "npm installs by its own configuration", r.stdout, r.stderr)
    t.ok("403" in r.stdout and not w.wrote(), "npm publish is refused, and install asks for nothing that is", r.stdout[-1500:], w.wrote())
    denied = [(x.get("method"), x.get("path")) for x in w.d.kinds("denied")]
    t.ok(denied and all(m == "PUT" for m, _ in denied), "nothing else was refused", denied)
    w.clean()


def cargo(t):
    tool = program("cargo")
    if not tool:
        t.skip("cargo", "cargo is not installed")
        return
    w = World(t, "cargo", registry.cargo(HOST))
    w.file(".cargo/config.toml", "[registries.corp]\nindex = \"sparse+https://%s/index/\"  # ours\n\n[registry]\n"
           "default = \"corp\"\n[build]\njobs = 1\n" % HOST)
    top = os.path.dirname(os.path.dirname(tool))
    script = ("cat ~/.cargo/config.toml; mkdir -p c/src && cd c && touch src/lib.rs && printf '[package]\\nname = \"c\"\\nversion = "
              "\"1.0.0\"\\nedition = \"2021\"\\nlicense = \"MIT\"\\ndescription = \"x\"\\n[dependencies]\\nacme-widget = {{ version = \"1\", "
              "registry = \"corp\" }}\\n' >Cargo.toml; export PATH={0}:$PATH; cargo fetch 2>&1; cat ~/.cargo/registry/src/*/*/src/lib.rs; "
              "cargo publish --registry corp --token x --no-verify --allow-dirty 2>&1 | tail -5").format(os.path.dirname(tool))
    r = w.run("cargo", script, "--bind", "%s:%s:ro" % (top, top))
    t.ok("index = \"sparse+https://%s/index/\"" % HOST in r.stdout and "ANSWER: u32 = 42" in r.stdout and "jobs" not in
         r.stdout.split("acme")[0], "cargo fetches by its own configuration", r.stdout, r.stderr)
    t.ok('"code":"method"' in r.stdout and not w.wrote(), "cargo publish is refused", r.stdout[-1500:], w.wrote())


def go(t):
    tool = program("go")
    if not tool:
        t.skip("go", "go is not installed")
        return
    w = World(t, "go", registry.go("acme.example/widget"))
    w.file(".config/go/env", "GOPROXY=https://me:%s@%s/go,direct\nGOSUMDB=off\nGOFLAGS=-mod=mod\n" % (w.secret("go"), HOST))
    top = os.path.dirname(os.path.dirname(tool))
    binds = [] if top.startswith("/usr/") else ["--bind", "%s:%s:ro" % (top, top)]
    r = w.run("go", "cat ~/.config/go/env; mkdir g; cd g; printf 'module g\\n' >go.mod; export GOTOOLCHAIN=local GOPATH=$PWD/p; "
              "%s get acme.example/widget 2>&1; cat p/pkg/mod/acme.example/*/widget.go; " % tool +
              REFUSED % ("PUT", HOST, "/go/acme.example/widget/@v/v9.zip") + "; chmod -R u+w p", *binds)
    t.ok("GOPROXY=https://%s/go,direct\nGOSUMDB=off\n" % HOST in r.stdout and "Answer = 42" in r.stdout and "GOFLAGS" not in r.stdout,
         "go gets a module by its own configuration", r.stdout, r.stderr)
    t.ok("upload 403" in r.stdout and not w.wrote(), "an upload is refused", r.stdout)
    w.clean()


def maven(t):
    if not shutil.which("mvn"):
        t.skip("maven", "mvn is not installed")
        return
    w = World(t, "maven", registry.maven())
    w.file(".m2/settings.xml", "<settings><servers><server><id>corp</id><password>%s</password></server></servers><mirrors><mirror>"
           "<id>corp</id><mirrorOf>*</mirrorOf><url>https://%s/maven</url></mirror></mirrors></settings>" % (w.secret("maven"), HOST))
    r = w.run("maven", "cat ~/.m2/settings.xml; mkdir m; cd m; printf '<project><modelVersion>4.0.0</modelVersion><parent><groupId>acme"
              "</groupId><artifactId>parent</artifactId><version>1.2.3</version><relativePath/></parent><artifactId>widget</artifactId>"
              "<packaging>pom</packaging></project>' >pom.xml; mvn -B -q validate && echo valid; " +
              REFUSED % ("PUT", HOST, "/maven/acme/x/1/x-1.pom"))
    t.ok("<url>https://%s/maven</url><mirrorOf>*</mirrorOf>" % HOST in r.stdout and "valid\n" in r.stdout,
         "mvn resolves by its own configuration", r.stdout[-3000:], r.stderr)
    t.ok("upload 403" in r.stdout and not w.wrote(), "a deployment is refused", r.stdout)
    w.clean()


def apt(t):
    """Its configuration is the system's alone: this test has a file system of its own with another one."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        t.skip("apt", "apt-get or dpkg-deb is not installed")
        return
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False, stderr=subprocess.DEVNULL).returncode:
        t.skip("apt", "needs root and mount namespaces: apt's sources are the system's")
        return
    w = World(t, "apt", registry.apt(t))
    etc = t.mkdir("apt-etc")
    os.makedirs(os.path.join(etc, "sources.list.d"))
    password = w.secret("apt")
    with open(os.path.join(etc, "sources.list.d/corp.sources"), "w") as f:
        f.write("Types: deb\nURIs: https://me:%s@%s/debian\nSuites: stable\nComponents: main\nTrusted: yes\n\nTypes: deb\nEnabled: no\n"
                "URIs: https://off.corp.example/debian\nSuites: ./\n" % (password, HOST))
    w.d.policies["default"]["rules"].append({"use": "apt"})
    w.d.save()
    script = ("mkdir -p ~/apt/lists/partial ~/apt/archives/partial; echo 'deb [trusted=yes] https://%s/debian stable main' >~/apt/list; O=\"-q -o "
              "Dir::Etc::sourcelist=$HOME/apt/list -o Dir::Etc::sourceparts=/dev/null -o Dir::State=$HOME/apt -o "
              "Dir::State::status=/dev/null -o Dir::Cache=$HOME/apt -o APT::Sandbox::User=\"; apt-get $O update 2>&1; apt-get $O download "
              "acme-widget 2>&1; ls *.deb; " % HOST) + REFUSED % ("PUT", HOST, "/debian/y.deb")
    argv = ["unshare", "-m", "sh", "-c", "mount --bind %s /etc/apt && exec \"$@\"" % etc, "sh", durward.program(), "run", "-c",
            w.d.conf, "--", "sh", "-c", script]
    r = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                       cwd=w.d.work, env=w.d.env, check=False)
    w.said += [r.stdout, r.stderr]
    t.ok("acme-widget_1.2.3_all.deb" in r.stdout, "apt-get updates and downloads", r.stdout[-3000:], r.stderr)
    t.has(r.stderr, "a credential in the URL was left out", "a credential in sources is not used")
    t.ok("upload 403" in r.stdout and not w.wrote(), "an upload is refused", r.stdout)
    w.clean()


def oci(t):
    tool = program("docker")
    if not tool:
        t.skip("oci", "docker is not installed")
        return
    token = scan.canary("tok-").decode()
    w = World(t, "oci", registry.oci(HOST, token))
    w.scanner.add("token", token.encode())
    w.file(".docker/config.json", json.dumps({"auths": {HOST: {"auth": "bWU6eA=="}}}), 0o600)
    binds = [] if tool.startswith("/usr/") else ["--bind", "%s:%s:ro" % (tool, tool)]
    r = w.run("oci", "%s manifest inspect %s/acme/widget:1; " % (tool, HOST) + REFUSED % ("POST", HOST, "/v2/acme/widget/blobs/uploads/"),
              *binds)
    t.ok('"schemaVersion": 2' in r.stdout, "docker reads a manifest: challenge, token, manifest", r.stdout, r.stderr,
         [(q.method, q.path, str(q.status)) for q in w.origin.requests])
    got = [q for q in w.origin.requests if q.path == "/v2/acme/widget/manifests/1" and q.status == 200]
    t.ok(got and got[0].get("authorization") == "Bearer " + token, "with the token that stays on the host")
    t.ok("upload 403" in r.stdout and not w.wrote(), "an upload is refused", r.stdout)
    for text in w.said:
        w.scanner.search(text, "output")
    t.ok(not w.scanner.hits, "the token is not inside", *map(str, w.scanner.hits))


def bounds(t):
    """Whose files count, and what is said where none does."""
    w = World(t, "bounds", registry.answer({}))
    other = "evil.corp.example"
    with open(os.path.join(w.d.work, ".npmrc"), "w") as f:
        f.write("registry=https://%s/\n" % other)
    for name in ("pip.conf", ".gemrc"):
        with open(os.path.join(w.d.work, name), "w") as f:
            f.write("[global]\nindex-url=https://%s/\n:sources:\n- https://%s/\n" % (other, other))
    show = w.d.command("preset", "show", "npm").stdout
    t.ok(other not in show, "a project's npmrc says nothing", show)
    r = w.run("rubygems", "true")
    t.ok(r.returncode == 125 and "which names none; write a URL below :sources:" in r.stderr and "--use rubygems" in r.stderr or
         os.path.exists("/etc/gemrc"), "no configuration: what to write", r.stderr)
    path = w.file(".gemrc", ":sources:\n- https://%s/gems/\n- https://$HOST/\n" % HOST)
    r = w.run("rubygems", "cat ~/.gemrc; curl -sS -o /dev/null -w '%{http_code}' https://" + HOST + "/gems/x")
    t.ok(r.returncode == 0 and ":sources:\n- https://%s/gems/\n404" % HOST in r.stdout and "it holds a variable" in r.stderr,
         "one source, and why not the other", r.stdout, r.stderr)
    r = w.run("rubygems", "true", "--bind", path)
    t.ok(r.returncode == 125 and "from which the preset 'rubygems' has its hosts" in r.stderr, "a bind that could write it is refused",
         r.stderr)
    r = w.run("rubygems", "true", "--no-bind", cwd=w.home)
    t.ok(r.returncode == 125 and "names none" in r.stderr, "in its folder it is not used", r.stderr)
    show = w.d.command("preset", "show", "rubygems", cwd=w.home).stdout
    t.has(show, "not used: it lies in the current directory", "and that is said")
    os.symlink(os.path.join(w.d.work, "pip.conf"), path + ".new")
    os.rename(path + ".new", path)
    show = w.d.command("preset", "show", "rubygems").stdout
    t.ok("not used: it lies in the current directory" in show and other not in show, "nor one that is a link into it", show)
    os.unlink(path)
    w.file(".gemrc", ":sources:\n- https://%s/\n" % other, 0o666)
    show = w.d.command("preset", "show", "rubygems").stdout
    t.ok("others can write it" in show and "#   %s\n" % other not in show, "nor one that others can write", show)
    os.chmod(path, 0o644)
    w.d.policies["default"]["rules"] = [{"use": "rubygems", "preset_hosts": {"files": HOST}}]
    w.d.save()
    r = w.d.command("explain", "-c", w.d.conf, "GET", "https://%s/x" % HOST)
    t.ok(r.returncode == 0 and "allow" in r.stdout, "further hosts stand beside those that were found", r.stdout, r.stderr)
    r = w.d.command("explain", "-c", w.d.conf, "GET", "https://%s/x" % other)
    t.ok("allow" in r.stdout.splitlines()[0], "which are there, too", r.stdout, r.stderr)
    r = w.d.command("explain", "-c", w.d.conf, "POST", "https://%s/x" % other)
    t.ok("deny" in r.stdout.splitlines()[0], "to read", r.stdout, r.stderr)
    w.d.policies["default"]["rules"] = [{"use": "rubygems", "secret": "x"}]
    w.d.secret("x", "x" * 20)
    r = w.d.check()
    t.ok(r.returncode == 1 and "sends no secret" in r.stderr + r.stdout, "such a preset takes no secret", r.stdout, r.stderr)


def writable(t):
    """No sandbox gets to write where the next run's hosts come from, whether or not a file is there yet."""
    w = World(t, "writable", registry.answer({}))
    w.file(".gemrc", ":sources:\n- https://%s/gems/\n" % HOST)
    bundle, far, there = (os.path.join(w.home, x) for x in (".bundle", "far", "there"))
    for path in (bundle, far, there):
        os.mkdir(path, 0o700)
    use, says = {"use": "rubygems"}, "from which the preset 'rubygems' has its hosts, would be writable"

    def tried(bind, refused, what, *flags, says=says, preset=None):
        r = w.run(preset, "true", "--policy", "default", "--bind", bind, *flags)
        t.ok(r.returncode == 125 and says in r.stderr if refused else r.returncode == 0, what, r.returncode, r.stderr)
    tried(bundle, False, "where no policy uses the preset, its folder may be bound")
    tried(bundle, True, "a folder where a file could be written that is not there yet", preset="rubygems")
    tried(bundle + ":ro", False, "to read it may be bound", preset="rubygems")
    tried(far, False, "a folder that has nothing to do with it", preset="rubygems")
    w.d.policy("other", [use])
    tried(bundle, True, "nor by a policy that does not use the preset, where another does")
    os.rename(bundle, os.path.join(far, "bundle"))
    os.symlink(os.path.join(far, "bundle"), bundle)
    tried(far, True, "nor where a link leads")
    os.rename(os.path.join(far, "bundle"), os.path.join(there, "bundle"))
    tried(far, True, "nor where a link leads to what is not there yet")
    os.unlink(bundle)
    os.symlink(os.path.join("far", "bundle"), bundle)
    os.symlink(os.path.join(there, "bundle"), os.path.join(far, "bundle"))
    tried(far, True, "nor where a link lies on the way")
    tried(there, True, "nor behind it")
    os.unlink(bundle)
    w.d.policies.pop("other")
    # the same of the login whose hosts another file says
    token = w.secret("cargo", "cio")
    config = w.file("cargo/config.toml", "[registries.corp]\nindex = \"sparse+https://%s/index/\"\n" % HOST)
    keys = w.file("keys/cargo.toml", "[registries.corp]\ntoken = \"%s\"\n" % token, 0o600)
    cargo_dir = os.path.join(w.home, ".cargo")
    os.mkdir(cargo_dir, 0o700)
    os.symlink(config, os.path.join(cargo_dir, "config.toml"))
    login, says = ("--login", "cargo=" + keys), "which says where cargo's tokens go, would be writable"
    tried(cargo_dir, True, "the folder of what says where cargo's tokens go", *login, says=says)
    tried(os.path.dirname(config), True, "and where that is a link to", *login, says=says)
    tried(far, False, "but another folder", *login)
    tried(cargo_dir, False, "and without the login")


def daemon(t):
    """A daemon reads the files when it starts, and again when it reloads."""
    w = World(t, "daemon", registry.answer({"/x": "here"}))
    path = w.file(".gemrc", ":sources:\n- https://first.corp.example/\n")
    w.d.policies["default"]["rules"] = [{"use": "rubygems"}]
    port = durward.free_port() if hasattr(durward, "free_port") else nginx.free_port()
    w.d.listen = [{"http": "127.0.0.1:%d" % port, "policy": "default"}]
    w.d.serve()
    ca = os.path.join(w.d.dir, "ca.pem")
    with open(ca, "w") as f:
        f.write(w.d.command("ca", "export", "-c", w.d.conf).stdout)

    def get():
        r = subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_connect} %{http_code}", "-x", "http://127.0.0.1:%d" % port,
                            "--cacert", ca, "https://%s/x" % HOST], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env=w.d.env, timeout=30, check=False)
        return r.stdout
    t.eq(get(), "403 000", "a host that no file names is denied")
    w.file(".gemrc", ":sources:\n- https://%s/\n" % HOST)
    r = w.d.command("reload", "--socket", w.d.socket)
    t.ok(r.returncode == 0 and get() == "200 200", "after a reload it is not", r.stdout, r.stderr, open(path).read())


def main(t):
    for part in (pip, npm, cargo, go, maven, apt, oci, bounds, writable, daemon):
        t.part(part, t)
    for name, tool in (("rubygems", "gem"), ("nuget", "dotnet")):
        t.skip("%s with %s" % (name, tool), "there is no double of its index yet; tests/unit/test_registries.c reads its files")


tap.run(main, timeout=600)
