"""Registries with one tiny package each, as cargo, Go, Maven, apt and Docker ask them (index.py: pip and npm)."""
import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
import zipfile

NAME, VERSION = "acme-widget", "1.2.3"


def answer(files, kind="application/octet-stream"):
    """A handler that has these: {path: bytes, text or a tree}; all else is 404."""
    def handler(req, conn):
        if req.method in ("GET", "HEAD") and req.path in files:
            conn.reply(req, 200, files[req.path], kind=kind)
        else:
            conn.reply(req, 404 if req.method in ("GET", "HEAD") else 201, "not here", kind="text/plain")
    return handler


def packed(files):
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as z, tarfile.open(fileobj=z, mode="w") as t:  # always the same bytes
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            t.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def cargo(host):
    """A sparse index below /index/, crates below /dl/."""
    base = "%s-%s/" % (NAME, VERSION)
    data = packed({base + "Cargo.toml": "[package]\nname = \"%s\"\nversion = \"%s\"\nedition = \"2021\"\n" % (NAME, VERSION),
                   base + "src/lib.rs": "pub const ANSWER: u32 = 42;\n"})
    line = {"name": NAME, "vers": VERSION, "deps": [], "cksum": hashlib.sha256(data).hexdigest(), "features": {}, "yanked": False}
    return answer({"/index/config.json": {"dl": "https://%s/dl/{crate}/{version}" % host, "api": "https://" + host},
                   "/index/%s/%s/%s" % (NAME[:2], NAME[2:4], NAME): json.dumps(line) + "\n",
                   "/dl/%s/%s" % (NAME, VERSION): data})


def go(module):
    """Go's protocol of module proxies below /go/."""
    version, out = "v" + VERSION, io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, text in (("go.mod", "module %s\n" % module), ("widget.go", "package widget\n\nconst Answer = 42\n")):
            z.writestr("%s@%s/%s" % (module, version, name), text)
    at = "/go/%s/@v/" % module
    return answer({at + "list": version + "\n", at + version + ".info": {"Version": version},
                   at + version + ".mod": "module %s\n" % module, at + version + ".zip": out.getvalue()})


def maven():
    pom = ("<project><modelVersion>4.0.0</modelVersion><groupId>acme</groupId><artifactId>parent</artifactId>"
           "<version>%s</version><packaging>pom</packaging></project>" % VERSION)
    path = "/maven/acme/parent/%s/parent-%s.pom" % (VERSION, VERSION)
    return answer({path: pom, path + ".sha1": hashlib.sha1(pom.encode()).hexdigest()})


def apt(t):
    """An archive without signatures below /debian/, with one package made by dpkg-deb."""
    top = t.mkdir("deb")
    os.makedirs(os.path.join(top, "DEBIAN"))
    with open(os.path.join(top, "DEBIAN/control"), "w") as f:
        f.write("Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: a <a@example.com>\nDescription: a widget\n" % (NAME, VERSION))
    deb = top + ".deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", top, deb], check=True, stdout=subprocess.DEVNULL)
    with open(deb, "rb") as f:
        data = f.read()
    with open(os.path.join(top, "DEBIAN/control")) as f:
        text = f.read() + "Filename: pool/%s.deb\nSize: %d\nSHA256: %s\n\n" % (NAME, len(data), hashlib.sha256(data).hexdigest())
    arch = subprocess.run(["dpkg", "--print-architecture"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    path = "/debian/dists/stable/main/binary-%s/Packages" % arch
    return answer({path: text, path + ".gz": gzip.compress(text.encode()), "/debian/pool/%s.deb" % NAME: data})


MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


def oci(host, token, realm=None, login=None, refresh=None):
    """A registry whose token server is asked first. login: the "Basic ..." that this wants; without it gives none. refresh: what
    it gives to who asks for a token that lives on."""
    def named(data):
        return "sha256:" + hashlib.sha256(data).hexdigest()
    layer = packed({"door.txt": "kept\n"})
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {
        "type": "layers", "diff_ids": [named(gzip.decompress(layer))]}}).encode()
    manifest = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "layers": [
        {"mediaType": LAYER, "size": len(layer), "digest": named(layer)}], "config": {
            "mediaType": "application/vnd.docker.container.image.v1+json", "size": len(config), "digest": named(config)}}).encode()
    own = named(manifest)
    blobs = {"/v2/acme/widget/blobs/" + named(x): x for x in (config, layer)}

    def handler(req, conn):
        if req.path == (realm or "/token"):
            good = login is None or req.get("authorization") == login
            said = {"token": token, "expires_in": 300}
            if refresh and "offline_token=true" in req.query:
                said["refresh_token"] = refresh
            conn.reply(req, 200 if good else 401, said if good else {"details": "who?"})
        elif req.get("authorization") != "Bearer " + token:
            conn.reply(req, 401, {"errors": [{"code": "UNAUTHORIZED", "message": "who?"}]}, headers=[
                ("Docker-Distribution-Api-Version", "registry/2.0"),
                ("WWW-Authenticate", 'Bearer realm="https://%s%s",service="%s",scope="repository:acme/widget:pull"' % (
                    host, realm or "/token", host))])
        elif req.path == "/v2/":
            conn.reply(req, 200, {}, headers=[("Docker-Distribution-Api-Version", "registry/2.0")])
        elif req.path in ("/v2/acme/widget/manifests/1", "/v2/acme/widget/manifests/" + own):
            conn.reply(req, 200, manifest, kind=MANIFEST, headers=[("Docker-Content-Digest", own)])
        elif req.path in blobs:
            conn.reply(req, 200, blobs[req.path], kind="application/octet-stream")
        else:
            conn.reply(req, 404, {"errors": [{"code": "NAME_UNKNOWN"}]})
    return handler
