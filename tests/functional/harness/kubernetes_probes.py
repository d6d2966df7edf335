"""Programs of others that look for a way out of a container, in a pod that has a gate: CDK and deepce. No registry has them:
DURWARD_PROBES names a folder with `cdk`, built from its sources without cgo, and `deepce.sh`."""
import os

from . import durward, engine, kubernetes, probes

FOLDERS = [x for x in (os.environ.get("DURWARD_PROBES"), os.path.join(durward.clients_dir(), "bin")) if x]
IMAGE = "localhost/probes:1"
RUN = {"cdk": (probes.cdk, "/opt/cdk evaluate --full 2>&1"), "deepce.sh": (probes.deepce, "bash /opt/deepce.sh 2>&1")}
# A pod's container is root with the runtime's usual capabilities, which is the node's to say; all else they are to find nothing of.
KNOWN = {"deepce.sh": {"what it calls exploitable": "User"}}
SERVICE = ("KUBERNETES_", "sensitive env found:")  # each pod is told where the API server is, which is closed to it
OF_THE_NODE = ("capabilities", "exploits for its kernel and its programs", "addresses at random", "names of control groups", "route_localnet",
               "variables that may be secrets", "set-uid programs beside those of /usr")


def place(name):
    return next((p for p in (os.path.join(x, name) for x in FOLDERS) if os.access(p, os.R_OK)), None)


def find(t, c, make):
    there = {name: place(name) for name in ("cdk", "deepce.sh")}
    for name in (x for x in there if not there[x]):
        t.skip("%s in a pod" % name, "no %s in %s" % (name, " or ".join(FOLDERS)))
    files = [("opt/" + name, path) for name, path in there.items() if path] + [("bin/bash", "/bin/bash")]
    c.take(kubernetes.image(IMAGE, engine.rootfs(files=files + [(p.lstrip("/"), os.path.realpath(p)) for p in engine.libraries("/bin/bash")]), ["/bin/sh"]))
    pod = make(c, "agents", "probes", container={"image": IMAGE, "readinessProbe": None, "command": ["/bin/sh", "-c", "exec sleep 1000"]})
    pod.create()
    if t.ok(pod.ready(), "a pod with probes of others", c.events("agents")):
        for name in (x for x in there if there[x]):
            read, command = RUN[name]
            text = pod.sh("cd /tmp 2>/dev/null; " + command, timeout=150)
            try:
                found = {k: probes.words(x for x in v.split(", ") if x != "none" and not x.startswith(SERVICE)) for k, v in read(text).items() if k not in OF_THE_NODE}
            except (TypeError, KeyError, ValueError):
                t.ok(False, "%s answers in a pod" % name, text[-2000:])
                continue
            want = {k: KNOWN.get(name, {}).get(k, "not it" if k == "the host's network namespace" else "none") for k in found}
            t.ok(found == want and len(found) > 5, "%s in a pod finds nothing: %s" % (name, ", ".join(sorted(found))),
                 *["%s: %s" % (k, v) for k, v in found.items() if v != want[k]])
    pod.delete()
