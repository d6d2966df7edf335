#!/usr/bin/python3 -B
"""Probes that others wrote, inside a sandbox behind each wall: what they find is what SPECIFICATION.md lists under
"What probes of others find", no more and no less. Behind a virtual machine `make walls` tries them.

setpriv and lsns (util-linux) are on every host; amicontained is built with the test clients, where there is Go. CDK is
in no registry: DURWARD_PROBES names a folder with the program `cdk`, built from its sources without cgo, and by
`make probes PROBES=FOLDER` this test is run with it."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, engine, tap, walls  # noqa: E402

FOLDERS = [x for x in (os.environ.get("DURWARD_PROBES"), os.path.join(durward.clients_dir(), "bin")) if x]
HEADING = "### What probes of others find"


def listed():
    """{(probe, finding): {backend: text}} of the table."""
    with open(os.path.join(durward.TOP, "SPECIFICATION.md")) as f:
        part = f.read().partition(HEADING)[2].partition("\n#")[0]
    rows, head, found = [[x.strip(" `") for x in line.strip("| \n").split("|")] for line in part.splitlines()
                         if line.startswith("|") and not line.startswith("|--")], None, {}
    head = rows[0][2:]
    for row in rows[1:]:
        found[row[0], row[1]] = dict(zip(head, row[2:]))
    return found


def words(items):
    return ", ".join(sorted(items)) or "none"


def amicontained(text):
    spaces = dict(re.findall(r"^\t(pid|user): (true|false)$", text, re.M))
    caps = re.search(r"^Capabilities:\n((?:\t.*\n)*)", text, re.M)[1]
    return {"container runtime": re.search(r"Container Runtime: (\S+)", text)[1],
            "namespaces of its own, of pid and user": words(k for k, v in spaces.items() if v == "true"),
            "capabilities": words({x.strip(",") for x in caps.split() if x[0].islower()}),
            "seccomp": re.search(r"Seccomp: (\S+)", text)[1],
            "refused calls": set(re.search(r"Blocked Syscalls.*\n\t(.*)", text)[1].split()),
            "engine's socket": words(text.partition("Looking for Docker.sock")[2].split())}


def cdk(text):
    def section(name):
        return re.search(r"\[  [^\]]*%s  \]\n(.*?)(?=\n\[  |\Z)" % re.escape(name), text, re.S)[1]
    caps = re.findall(r"Cap\w{3}:\t(\w+)", text)
    mounts = [x.split() for x in section("Mounts").splitlines() if re.match(r"\d+:\d+ ", x)]
    ours = [m for m in mounts if m[-2].startswith("/dev/") and not m[3].startswith("ro")]
    # on the host's /usr they are there, on a mount that is nosuid
    setuid = [x.strip() for x in re.findall(r"^\t(/\S+)$", section("System Info"), re.M)]
    metadata = section("Cloud Provider Metadata API").splitlines()
    return {"capabilities": words(c for c in caps if int(c, 16)) if len(caps) == 5 else text,
            "set-uid programs beside those of /usr": words(x for x in setuid if x.split("/")[1] not in ("usr", "bin", "sbin")),
            "sensitive services and variables": words(section("Services").split()),
            "the host's network namespace": "not it" if "container net namespace isolated" in text else section("Net Namespace"),
            "mounts of the host's disks that can be written": words(m[2] for m in ours),
            "metadata services": words(x for x in metadata if "failed to dial" not in x),
            "what it calls critical": words(x for x in text.splitlines() if "ritical" in x)}


def setpriv(text):
    got = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    ambient = got.get("Ambient capabilities", "[none]").strip("[]")  # gVisor does not tell, and setpriv ends there
    return {"capabilities that can be inherited": got["Inheritable capabilities"].strip("[]"),
            "ambient capabilities": "not told" if "CAP_AMBIENT_IS_SET" in ambient else ambient,
            "bounding set": got.get("Capability bounding set", "not told").strip("[]"),
            "no new privileges": got["no_new_privs"]}


def lsns(text):
    """Which of its namespaces are others than ours, who are outside."""
    found = dict(line.split() for line in text.splitlines()[1:])
    return {"namespaces of its own": words(k for k, n in found.items()
                                           if os.readlink("/proc/self/ns/" + k) != "%s:[%s]" % (k, n))}


PROBES = {"amicontained": (amicontained, "./amicontained", "amicontained"),
          "cdk evaluate --full": (cdk, "./cdk evaluate --full 2>&1", "cdk"),
          "setpriv --dump": (setpriv, "setpriv --dump", None),
          "lsns -p PID": (lsns, "lsns -p $$ -o TYPE,NS", None)}


def compare(t, want, backend, probe, got):
    for finding, value in got.items():
        text = want.get((probe, finding), {}).get(backend, "(not listed)")
        what = "%s: %s: %s: %s" % (backend, probe, finding, text)
        if text == "not tried":
            t.skip("%s: %s: %s" % (backend, probe, finding), "SPECIFICATION.md lists nothing yet: %s" % (value,))
            continue
        if isinstance(value, set):  # others may be refused by this kernel itself
            t.ok(set(text.split(", ")) <= value, what, "not refused: %s" % (set(text.split(", ")) - value))
        else:
            t.eq(value, text, what)
    for p, finding in want:
        if p == probe and finding not in got:
            t.ok(False, "%s: %s: it says something of %s" % (backend, probe, finding))


def judge(t, c, wall, image):
    want = listed()
    box = c.create(policy=wall, **({"image": image} if image else {}))["id"]
    for probe, (read, command, name) in PROBES.items():
        if name is not None:
            there = [p for p in (os.path.join(x, name) for x in FOLDERS) if os.access(p, os.X_OK)]
            if not there:
                t.skip("%s: %s" % (wall, probe), "no %s in %s" % (name, " or ".join(FOLDERS)))
                continue
            with open(there[0], "rb") as f:
                c.write(box, "/workspace/" + name, f.read(), mode="0755")
        r = c.exec(box, command, timeout=280, env={"LC_ALL": "C"})
        try:
            compare(t, want, wall, probe, read(r["output"]))
        except (TypeError, KeyError, ValueError):
            t.ok(False, "%s: %s answers" % (wall, probe), r["output"][-2000:])
    c.delete(box)


def main(t):
    d = durward.Durward(t)
    w = walls.Walls(t)
    here = dict(w.each("probes of others", [x for x in walls.WALLS if x != "microvm"]))
    for wall, settings in here.items():
        d.policies[wall] = {"rules": [], "sandbox": settings}
    d.serve()
    c = api.Api(d.socket, timeout=300)  # amicontained looks for a socket at every file there is
    r = d.command("image", "import", "-c", d.conf, "-", "probes", stdin=w.image())
    t.eq(r.returncode, 0, "an image with few files") or t.diag(r.stderr)
    for wall in here:
        t.part(judge, t, c, wall, "probes" if wall in ("gvisor", "microvm") else None)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=900)
