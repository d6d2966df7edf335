"""Package indexes with one tiny package each: the simple index of Python, the registry of npm."""
import base64
import hashlib
import io
import json
import tarfile
import zipfile

NAME, VERSION = "acme-widget", "1.2.3"


def wheel():
    """A pure Python wheel of one module; (file name, bytes)."""
    flat = NAME.replace("-", "_")
    info = "%s-%s.dist-info" % (flat, VERSION)
    files = {
        flat + ".py": "ANSWER = 42\n",
        info + "/METADATA": "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (NAME, VERSION),
        info + "/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
                         "Tag: py3-none-any\n",
    }
    record = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record.append("%s,sha256=%s,%d" % (name, digest.decode(), len(text)))
    record.append(info + "/RECORD,,")
    files[info + "/RECORD"] = "\n".join(record) + "\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for name, text in files.items():
            z.writestr(name, text)
    return "%s-%s-py3-none-any.whl" % (flat, VERSION), out.getvalue()


def pypi():
    """PEP 503 pages and one wheel."""
    name, data = wheel()
    page = '<!DOCTYPE html><html><body><a href="/files/%s#sha256=%s">%s</a></body></html>' % (
        name, hashlib.sha256(data).hexdigest(), name)

    def handler(req, conn):
        if req.path == "/simple/%s/" % NAME:
            conn.reply(req, 200, page, kind="text/html")
        elif req.path == "/files/" + name:
            conn.reply(req, 200, data, kind="application/octet-stream")
        else:
            conn.reply(req, 404, "no such project", kind="text/plain")
    return handler


def tarball():
    package = json.dumps({"name": NAME, "version": VERSION, "main": "index.js"})
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, text in (("package/package.json", package),
                           ("package/index.js", "module.exports = 42;\n")):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            t.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def npm(host):
    """One package document and its tarball, with the integrity that npm checks."""
    data = tarball()
    file = "%s-%s.tgz" % (NAME, VERSION)
    document = {
        "name": NAME, "dist-tags": {"latest": VERSION},
        "versions": {VERSION: {"name": NAME, "version": VERSION, "main": "index.js", "dist": {
            "tarball": "https://%s/%s/-/%s" % (host, NAME, file),
            "shasum": hashlib.sha1(data).hexdigest(),
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()}}}}

    def handler(req, conn):
        if req.path == "/" + NAME:
            conn.reply(req, 200, document)
        elif req.path == "/%s/-/%s" % (NAME, file):
            conn.reply(req, 200, data, kind="application/octet-stream")
        else:
            conn.reply(req, 404, {"error": "not found"})
    return handler
