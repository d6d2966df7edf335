"""A small root file system out of this host's programs, and archives of every shape."""
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import tarfile

PROGRAMS = ("sh", "ls", "cat", "id", "touch", "stat", "mkdir", "rm", "ln", "mv", "head")


def make(top):
    """dash, some of coreutils, their libraries; usr-merged as the host is."""
    for d in ("usr/bin", "usr/lib", "usr/lib64", "etc", "root", "var/lib"):
        os.makedirs(os.path.join(top, d), exist_ok=True)
    for d in ("bin", "lib", "lib64"):
        os.symlink("usr/" + d, os.path.join(top, d))
    for p in PROGRAMS:
        path = os.path.realpath("/usr/bin/" + p)
        shutil.copy(path, os.path.join(top, "usr/bin", p))
        for word in subprocess.check_output(["ldd", path], text=True).split():
            if word.startswith("/"):
                to = os.path.join(top, "usr" + word[4:] if word.startswith("/usr") else
                                  "usr" + word)
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copy(os.path.realpath(word), to)
    with open(os.path.join(top, "etc/passwd"), "w") as f:
        f.write("root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33::/var/www:/bin/sh\n")
    return top


def member(name, kind=tarfile.REGTYPE, content=b"", mode=0o644, link="", **more):
    m = tarfile.TarInfo(name)
    m.type, m.mode, m.linkname, m.size = kind, mode, link, len(content)
    for k, v in more.items():
        setattr(m, k, v)
    return m, content


def archive(members, mode="w"):
    """[(TarInfo, bytes)] -> bytes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=tarfile.PAX_FORMAT) as t:
        for m, content in members:
            t.addfile(m, io.BytesIO(content))
    return out.getvalue()


def whole(top, mode="w"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as t:
        t.add(top, arcname=".")
    return out.getvalue()


class Layout:
    """An OCI image layout in a directory."""

    def __init__(self, top):
        self.top = top
        os.makedirs(os.path.join(top, "blobs/sha256"))

    def blob(self, content):
        digest = hashlib.sha256(content).hexdigest()
        with open(os.path.join(self.top, "blobs/sha256", digest), "wb") as f:
            f.write(content)
        return {"digest": "sha256:" + digest, "size": len(content)}

    def image(self, layers, arch=None):
        config = self.blob(json.dumps({"architecture": "x", "os": "linux"}).encode())
        manifest = self.blob(json.dumps({
            "schemaVersion": 2, "config": config, "layers": [self.blob(x) for x in layers]}).encode())
        if arch:
            manifest["platform"] = {"os": "linux", "architecture": arch}
        return manifest

    def index(self, *manifests):
        for name, value in (("oci-layout", {"imageLayoutVersion": "1.0.0"}),
                            ("index.json", {"schemaVersion": 2, "manifests": list(manifests)})):
            with open(os.path.join(self.top, name), "w") as f:
                json.dump(value, f)


def docker_save(layers):
    """What `docker save` wrote before it wrote OCI layouts too."""
    manifest = [{"Config": "c.json", "RepoTags": ["x:latest"],
                 "Layers": ["%d/layer.tar" % i for i in range(len(layers))]}]
    return archive([member("manifest.json", content=json.dumps(manifest).encode()),
                    member("c.json", content=b"{}")] +
                   [member("%d/layer.tar" % i, content=x) for i, x in enumerate(layers)])


def architecture():
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
