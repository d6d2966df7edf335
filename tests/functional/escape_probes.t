#!/usr/bin/python3 -B
"""Probes that others wrote, inside a sandbox behind each wall: what they find is what SPECIFICATION.md lists under
"What probes of others find", no more and no less; and what they have to get out by gets nobody out. Behind a virtual
machine `make walls` tries them.

setpriv and lsns (util-linux) are on every host; amicontained is built with the test clients, where there is Go. CDK and
deepce are in no registry: DURWARD_PROBES names a folder with CDK's program `cdk`, built without cgo, and with
`deepce.sh`, and by `make probes PROBES=FOLDER` this test is run with it."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, probes, tap, walls  # noqa: E402

FOLDERS = [x for x in (os.environ.get("DURWARD_PROBES"), os.path.join(durward.clients_dir(), "bin")) if x]
HEADING = "### What probes of others find"
CANARY = b"HOST-CANARY-0123456789"
# deepce looks at all there is where it takes its place for a container, and at an engine where it does not
PROBES = {"amicontained": (probes.amicontained, "./amicontained", "amicontained"),
          "cdk evaluate --full": (probes.cdk, "./cdk evaluate --full 2>&1", "cdk"),
          "deepce.sh": (probes.deepce, "sh deepce.sh 2>&1; container=lxc sh deepce.sh 2>&1", "deepce.sh"),
          "setpriv --dump": (probes.setpriv, "setpriv --dump", None),
          "lsns -p PID": (probes.lsns, "lsns -p $$ -o TYPE,NS", None)}
# %(made)s: a file of the host's, to be made by whoever has come out; %(read)s: one to be read
WAYS = {"cdk": ["mount-cgroup 'touch %(made)s' memory", "abuse-unpriv-userns 'touch %(made)s'", "rewrite-cgroup-devices",
                "mount-disk", "cap-dac-read-search /etc/hostname %(read)s", "cap-dac-read-search /etc/hostname / touch %(made)s",
                "mount-procfs /proc 'touch %(made)s'", "shim-pwn 'touch %(made)s'", "check-ptrace",
                "docker-sock-pwn /var/run/docker.sock 'touch /host%(made)s'",
                "docker-api-pwn http://127.0.0.1:2375 'touch /host%(made)s'", "lxcfs-rw", "lxcfs-rw-cgroup 'touch %(made)s'"],
        "deepce.sh": ["PRIVILEGED", "SOCK", "DOCKER"]}
MISUSED = ("nvalid script", "nvalid input args.\n", "Unknown exploit")
COMMANDS = {"cdk": "./cdk run %s 2>&1 </dev/null", "deepce.sh": "sh deepce.sh -ne -nc -q -cmd 'touch %%(made)s' -e %s 2>&1 </dev/null"}


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


def escapes(t, c, wall, box, name):
    """All that a probe has to get out by. Whoever is out makes a file on the host, or has read one of the host's."""
    at = t.mkdir("out-of-" + wall, 0o777)
    words = {"made": os.path.join(at, "made"), "read": t.write("out-of-%s/read" % wall, CANARY)}
    ran, out = 0, []
    for way in WAYS[name]:
        r = c.exec(box, COMMANDS[name] % way % words, timeout=60)
        said = r["output"]
        ran += r["exit_code"] not in (126, 127) and not [x for x in MISUSED if x in said]
        if CANARY.decode() in said or sorted(os.listdir(at)) != ["read"]:
            out.append(way.split()[0])
    t.ok(ran == len(WAYS[name]) and not out, "%s: %s: %d ways out, and none leads to the host" % (wall, name, ran), out)


def judge(t, c, wall, image):
    want = listed()
    box = c.create(policy=wall, **({"image": image} if image else {}))["id"]
    for probe, (read, command, name) in PROBES.items():
        if name is not None:
            there = [p for p in (os.path.join(x, name) for x in FOLDERS) if os.access(p, os.R_OK)]
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
        if name in WAYS:
            t.part(escapes, t, c, wall, box, name)
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
