"""A pod of a Kubernetes manifest, its containers started by an engine."""
import json
import os
import shutil
import subprocess

from . import engine, tap


class Pod:
    """Containers of one pod as a node would start them, by the manifest: network, user, capabilities, volumes, environment."""

    def __init__(self, t, e, spec, files, name):
        self.t, self.e, self.spec, self.name = t, e, spec, name
        self.volumes = {v["name"]: self._volume(v, files) for v in spec["volumes"]}
        self.network, self.last = None, None

    def _volume(self, v, files):
        group = self.spec["securityContext"].get("fsGroup")
        where = self.t.mkdir("%s-%s" % (self.name, v["name"]), 0o2770 if group else 0o777)
        os.chown(where, 0, group or 0)
        os.chmod(where, 0o2770 if group else 0o777)
        kind = "configMap" if "configMap" in v else "secret" if "secret" in v else None
        source = v[kind].get("name", v[kind].get("secretName")) if kind else None
        for name, text in files.get(source, {}).items():
            path = self.t.write("%s-%s/%s" % (self.name, v["name"], name), text, v[kind].get("defaultMode", 0o644))
            os.chown(path, 0, group or 0)
        if kind:
            os.chmod(where, 0o755)
        return where

    def _body(self, c, image):
        s = dict(self.spec["securityContext"], **c["securityContext"])
        binds = ["%s:%s%s" % (os.path.join(self.volumes[m["name"]], m.get("subPath", "")).rstrip("/"), m["mountPath"],
                             ":ro" if m.get("readOnly") else "") for m in c.get("volumeMounts", [])]
        for m in c.get("volumeMounts", []):
            if "subPath" in m:
                where = os.path.join(self.volumes[m["name"]], m["subPath"])
                os.makedirs(where, exist_ok=True)
                os.chown(where, 0, s["fsGroup"])
                os.chmod(where, 0o2770)
        body = {"Image": image or c["image"], "User": "%d:%d" % (s["runAsUser"], s.get("runAsGroup", 0)),
                "Env": ["%s=%s" % (x["name"], x["value"].replace("$(DURWARD_SERVICE_HOST)", c.get("service", ""))) for x in
                        c.get("env", [])],
                "HostConfig": {"Binds": binds, "CapDrop": s["capabilities"]["drop"], "CapAdd": s["capabilities"].get("add"),
                               "ReadonlyRootfs": s.get("readOnlyRootFilesystem", False), "SecurityOpt": ["no-new-privileges"],
                               "NetworkMode": self.network, "GroupAdd": [str(s["fsGroup"])] if "fsGroup" in s else None}}
        if "command" in c:
            body["Entrypoint"], body["Cmd"] = c["command"][:1], c["command"][1:]
        return body

    def start(self, c, image=None, wait=False):
        """Starts it; with `wait` to its end, and gives its status."""
        self.last = self.e.create("%s-%s" % (self.name, c["name"]), self._body(c, image))
        return self.e.begin(self.last, wait)


class Played:
    """A manifest that `podman kube play` takes as it is, in this test's network namespace."""

    def __init__(self, t, image):
        """image: a file that an engine saved. Skips where there is no such Podman."""
        self.t = t
        if not os.access(engine.PODMAN, os.X_OK) or not shutil.which("catatonit"):
            raise tap.Skip("podman or catatonit is missing (packages podman, catatonit)")
        conf = t.write("podman/containers.conf", '[engine]\ncgroup_manager="cgroupfs"\nruntime="runc"\nevents_logger="file"\n'
                       'lock_type="file"\ntmp_dir="%s"\n[containers]\ndefault_ulimits=["nofile=4096:4096","nproc=4096:4096"]\n'
                       % t.mkdir("podman/tmp"))
        self.env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": t.mkdir("podman/home"), "CONTAINERS_CONF": conf}
        t.cleanup(self.clean)
        code, said = self("load", "-q", "-i", image, timeout=300)
        if code != 0:
            raise RuntimeError("podman does not load the image: %s" % said)

    def __call__(self, *argv, timeout=120):
        """-> (exit status, output of both kinds)."""
        # elsewhere, for `kube play` takes a folder of the image's name for something to build
        r = subprocess.run([engine.PODMAN, "--root", self.t.path("podman/data"), "--runroot", self.t.path("podman/run"),
                            "--storage-driver", "overlay", *argv], env=self.env, cwd=self.t.tmp, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
        return r.returncode, r.stdout

    def play(self, name, objects):
        path = self.t.write("podman/%s.yaml" % name, "---\n".join(json.dumps(x) + "\n" for x in objects), 0o600)
        return self("kube", "play", path)

    def clean(self):
        self("pod", "rm", "-af")
        self("rm", "-af")
        with open("/proc/self/mountinfo") as f:
            mounts = [line.split()[4] for line in f]
        for path in sorted((m for m in mounts if m.startswith(self.t.path("podman"))), reverse=True):
            subprocess.run(["umount", "-l", path], check=False)
