#!/usr/bin/python3 -B
"""`sandbox: { devices: [...] }`: devices of the host by CDI specifications, of `durward run` and of the daemon; what of a
specification is refused. The devices are harmless: /dev/zero and /dev/full under other names. What has a place in an image is
tried as ordinary users, too, whose image may be another uid's of theirs."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, person, rootfs, tap  # noqa: E402

LIBRARY = "/usr/share/doc/bash/copyright"
ZERO = {"path": "/dev/things/zero", "hostPath": "/dev/zero", "type": "c", "major": 1, "minor": 5, "permissions": "rw"}
LOOK = "head -c 3 /dev/things/zero | od -An -tx1; echo $THING $ZERO; cat /dev/things/full 2>&1 | head -c 1 | od -An -tx1; " \
    "rm /dev/things/zero 2>/dev/null || echo kept; head -c 1 %s >/dev/null && echo read" % LIBRARY


class Specs:
    """Folders of specifications in scratch."""

    def __init__(self, t):
        self.t, self.first, self.second = t, t.mkdir("cdi-1"), t.mkdir("cdi-2")
        for folder in (self.first, self.second):
            os.chmod(folder, 0o755)

    def write(self, folder, name, text, mode=0o644):
        path = os.path.join(folder, name)
        with open(path, "w") as f:
            f.write(text if isinstance(text, str) else json.dumps(text))
        os.chmod(path, mode)
        return path


def spec(edits, name="one", **more):
    return dict({"cdiVersion": "0.6.0", "kind": "durward.test/thing", "devices": [{"name": name, "containerEdits": edits}]}, **more)


def works(t, d, specs):
    specs.write(specs.first, "a.json", spec({"deviceNodes": [ZERO], "env": ["ZERO=1"], "mounts": [
        {"hostPath": LIBRARY, "containerPath": LIBRARY, "options": ["ro", "nosuid", "nodev", "bind"]}]},
        name="zero", containerEdits={"env": ["THING=every"]}))
    specs.write(specs.second, "b.yaml", "cdiVersion: '1.0.0'\nkind: durward.test/other\ndevices:\n  - name: full\n    containerEdits:\n"
                "      deviceNodes:\n        - { path: /dev/things/full, hostPath: /dev/full }\n")
    d.policies["dev"]["sandbox"] = {"devices": ["durward.test/thing=zero", "durward.test/other=full"],
                                    "device_specs": [specs.first, specs.second]}
    r = d.check()
    t.ok(r.returncode == 0 and "/dev/things/zero is /dev/zero of this host" in r.stderr and LIBRARY in r.stderr,
         "check says what it opens", r.stdout, r.stderr)
    want = ["00 00 00", "every 1", "00", "kept", "read"]
    r = d.run(["sh", "-c", LOOK], ["--policy", "dev"])
    t.eq([x.strip() for x in r.stdout.splitlines()], want, "`durward run` has them, and their variables") or t.diag(r.stderr)
    r = d.run(["sh", "-c", "ls /dev/things; echo $THING"], ["--policy", "plain"])
    t.eq(r.stdout.strip(), "", "another policy has none")
    d.serve()
    c = api.Api(d.socket)
    box = c.create(policy="dev")["id"]
    r = c.exec(box, LOOK, split=True)
    t.eq([x.strip() for x in r["stdout"].splitlines()], want, "the daemon's sandboxes, too") or t.diag(r)
    specs.write(specs.second, "c.json", spec({"deviceNodes": [dict(ZERO, hostPath="/dev/full", minor=7)]}, name="zero"))
    c.ask("POST", "/v1/reload")
    other = c.create(policy="dev")["id"]
    r = c.exec(other, "echo x >/dev/things/zero", split=True)
    t.ok(r["exit_code"] != 0, "the folder that is named last wins, from the next reload on", r)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")
    os.unlink(os.path.join(specs.second, "c.json"))


def replaced(t, d, specs):
    """Another node comes to the place of one that was looked at when the configuration was read."""
    node = "/dev/durward-test-%d" % os.getpid()
    t.cleanup(lambda: os.path.exists(node) and os.unlink(node))

    def put(minor):
        if os.path.exists(node):
            os.unlink(node)
        os.mknod(node, 0o020666, os.makedev(1, minor))
        os.chmod(node, 0o666)
    put(5)
    specs.write(specs.first, "n.json", spec({"deviceNodes": [{"path": "/dev/things/n", "hostPath": node}]}, name="n"))
    d.policies["dev"]["sandbox"] = {"devices": "durward.test/thing=n", "device_specs": specs.first}
    d.serve()
    c = api.Api(d.socket)
    r = c.exec(c.create(policy="dev")["id"], "head -c 2 /dev/things/n | od -An -tx1", split=True)
    t.eq(r["stdout"].strip(), "00 00", "a node of its own name")
    put(11)
    try:
        c.create(policy="dev")
        t.ok(False, "in its place the kernel's log: refused by the builder")
    except api.Refused as e:
        t.has(str(e), "is not what a sandbox may have", "in its place the kernel's log: refused by the builder")
    c.close()
    d.stop()
    os.unlink(os.path.join(specs.first, "n.json"))


def placed(t, d, specs):
    """Files of a device, where the sandbox's root has links: none of them is followed, for they could lead to the host."""
    outside, bound = t.mkdir("outside"), t.mkdir("bound")
    os.chmod(outside, 0o777)
    os.chmod(os.path.dirname(outside), 0o755)
    mounts = [{"hostPath": LIBRARY, "containerPath": p, "options": ["ro"]} for p in ("/opt/vendor/lib/x.so", "/lib/vendor-x.so")]
    specs.write(specs.first, "m.json", spec({"mounts": mounts}, name="m"))
    specs.write(specs.first, "o.json", spec({"mounts": mounts[:1]}, name="o"))
    d.policies["dev"]["sandbox"] = {"devices": "durward.test/thing=m", "device_specs": specs.first}
    top = rootfs.make(t.mkdir("plain"))
    os.chmod(top + "/usr/lib", 0o751)
    os.mkdir(top + "/home")
    d.save()
    t.eq(d.command("image", "import", "-c", d.conf, top, "plain").returncode, 0, "an image")
    os.makedirs(top + "/opt")
    os.symlink("/oldroot" + outside, top + "/opt/vendor")
    t.eq(d.command("image", "import", "-c", d.conf, top, "linked").returncode, 0, "an image with a link")
    look = "cat /opt/vendor/lib/x.so /lib/vendor-x.so >/dev/null && echo read; echo x 2>/dev/null >/opt/vendor/lib/x.so || echo kept"
    r = d.run(["sh", "-c", look], ["--policy", "dev", "--image", "plain"])
    t.eq(r.stdout.split(), ["read", "kept"], "a device's files are made places, in a merged /lib too, and are only read") or t.diag(r.stderr)
    look = "echo in >/usr/lib/in/it/f; cat /usr/lib/in/it/f; stat -c %a /usr/lib /usr; touch /usr/lib/x 2>/dev/null && echo bad"
    r = d.run(["sh", "-c", look], ["--policy", "dev", "--image", "plain", "--bind", bound + ":/usr/lib/in/it", "--bind",
                                   LIBRARY + ":/usr/lib/in/file:ro"], env=dict(d.env, HOME="/home/me"))
    t.eq((r.stdout.split(), os.listdir(bound)), (["in", "751", "755"], ["f"]), "so are the places of binds and of a home, and its directories stay") or \
        t.diag(r.stderr)
    os.unlink(bound + "/f")
    r = d.run(["true"], ["--policy", "dev", "--image", "linked"])
    t.ok(r.returncode == 125 and "vendor is a symbolic link inside the sandbox" in r.stderr and os.listdir(outside) == [],
         "a link of an image's in their place: refused, and nothing is made on the host", r.stderr, os.listdir(outside))
    d.policies["dev"]["sandbox"]["devices"] = "durward.test/thing=o"
    for where in ("/opt", "/opt/vendor/lib/x.so/y"):
        r = d.run(["true"], ["--policy", "dev", "--bind", "%s:%s" % (bound, where)])
        t.ok(r.returncode == 125 and "something is bound at " + where in r.stderr and os.listdir(bound) == [],
             "a device's files inside a bind, or around it: refused (%s)" % where, r.stderr, os.listdir(bound))
    d.serve()
    c = api.Api(d.socket)
    box = c.create(policy="dev")["id"]
    r = c.exec(box, "mv /opt/vendor /opt/v2 && ln -s /oldroot%s /opt/vendor && ls /opt/v2/lib" % outside, split=True)
    t.eq(r["stdout"].strip(), "x.so", "code inside puts a link there") or t.diag(r)
    c.ask("POST", "/v1/sandboxes/%s/stop" % box)
    try:
        c.ask("POST", "/v1/sandboxes/%s/resume" % box)
        t.ok(False, "the next start does not follow it")
    except api.Refused as e:
        t.ok("symbolic link" in str(e) and os.listdir(outside) == [], "the next start does not follow it", e, os.listdir(outside))
    c.delete(box)
    c.close()
    d.stop()
    d.command("image", "rm", "-c", d.conf, "plain", "linked")  # whose files are another uid's
    os.unlink(os.path.join(specs.first, "m.json"))
    os.unlink(os.path.join(specs.first, "o.json"))


def refused(t, d, specs):
    node = lambda **v: spec({"deviceNodes": [dict({"path": "/dev/things/x", "hostPath": "/dev/zero"}, **v)]})  # noqa: E731
    mount = lambda host, path=None, options=("ro",): spec(  # noqa: E731
        {"mounts": [{"hostPath": host, "containerPath": path or host, "options": list(options)}]})
    for what, text, why in (
            ("a file as a device", node(hostPath="/etc/passwd"), "below /dev"), ("a link that leads up", node(hostPath="/dev/../etc/passwd"), "below /dev"),
            ("a descriptor", node(hostPath="/dev/fd/0"), "below /dev"), ("shared memory", node(hostPath="/dev/shm/x"), "below /dev"),
            ("one over the sandbox's own", node(path="/dev/null"), "none of a sandbox's own"),
            ("one outside /dev", node(path="/etc/x"), "below /dev"), ("the kernel's log", node(hostPath="/dev/kmsg"), "raw memory, consoles"),
            ("a terminal", node(hostPath="/dev/tty"), "raw memory, consoles"), ("a block device", node(type="b"), "no character device"),
            ("another number than it says", node(minor=3), "its number is not"), ("for reading alone", node(permissions="r"), "less than reading"),
            ("a key that is not known", node(mode=7), "not known: mode"),
            ("a hook", spec({"hooks": [{"hookName": "createContainer", "path": "/bin/true"}]}), "a hook is a program"),
            ("a network device", spec({"netDevices": [{"hostInterfaceName": "eth0", "name": "eth0"}]}), "way out beside"),
            ("groups", spec({"additionalGids": [27]}), "groups of the host"), ("intelRdt", spec({"intelRdt": {"closID": "x"}}), "intelRdt"),
            ("a secret of the host", mount("/etc/shadow"), "only programs and libraries"), ("a service's socket", mount("/run/x.sock"), "only programs"),
            ("the host's root", mount("/", "/usr/x"), "only programs"), ("the whole of /usr", mount("/usr"), "only programs"),
            ("Durward's own state", mount(d.dir, "/usr/x"), "only programs"), ("a place in the sandbox's /etc", mount(LIBRARY, "/etc/passwd"), "only programs"),
            ("a mount to write to", mount(LIBRARY, options=("rw",)), "is read-only"), ("what is not there", mount("/usr/none"), "no such file"),
            ("the search path", spec({"env": ["PATH=/x"]}), "may not be set"), ("a library for every program", spec({"env": ["LD_PRELOAD=/x"]}), "may not be set"),
            ("another proxy", spec({"env": ["https_proxy=http://x"]}), "may not be set"), ("another root", spec({"env": ["CURL_CA_BUNDLE=/x"]}), "may not be set"),
            ("a version to come", spec({"deviceNodes": [ZERO]}, cdiVersion="2.0.0"), "cdiVersion is not known"),
            ("no version", spec({"deviceNodes": [ZERO]}, cdiVersion=None), "cdiVersion is not known"),
            ("too many parts", spec({"deviceNodes": [{"path": "/dev/t/%d" % i, "hostPath": "/dev/zero"} for i in range(65)]}), "too many parts"),
            ("too many variables", spec({"env": ["V%d=1" % i for i in range(33)]}), "too many variables"),
            ("what is no JSON", "{", "x.json"), ("an alias of YAML", "a: &x 1\nb: *x\n", "x.json"), ("another device", spec({}, name="two"), "no specification")):
        specs.write(specs.first, "x.json", text)
        d.policies["dev"]["sandbox"] = {"devices": "durward.test/thing=one", "device_specs": specs.first}
        r = d.check()
        t.ok(r.returncode != 0 and why in r.stdout + r.stderr, "refused: " + what, r.stdout, r.stderr)
    specs.write(specs.first, "x.json", spec({"deviceNodes": [ZERO]}), mode=0o666)
    t.ok("nobody else may write it" in d.check().stderr, "refused: a specification that anybody may write")
    specs.write(specs.first, "x.json", spec({"deviceNodes": [ZERO]}))
    os.chmod(specs.first, 0o777)
    t.ok("nobody else may write it" in d.check().stderr, "refused: a directory that anybody may write")
    os.chmod(specs.first, 0o755)
    specs.write(specs.first, "y.yml", spec({"deviceNodes": [ZERO]}))
    t.ok("two specifications" in d.check().stderr, "refused: two specifications of one device in a folder")
    os.unlink(os.path.join(specs.first, "y.yml"))
    t.eq(d.check().returncode, 0, "one of them is taken")
    for more, why in (({"nested": True}, "nested"), ({"backend": "docker", "docker": {"image": "x"}}, "bwrap"),
                      ({"devices": ["durward.test/thing=one"] * 9}, "at most 8"), ({"devices": "thing"}, "vendor.com/class=name"),
                      ({"device_specs": "cdi"}, "absolute"), ({"devices": {"nodes": [{"host": "/dev/kmsg", "path": "/etc/x"}]}}, "not a device")):
        d.policies["dev"]["sandbox"] = dict({"devices": "durward.test/thing=one", "device_specs": specs.first}, **more)
        r = d.check()
        t.ok(r.returncode != 0 and why in r.stderr, "refused: " + json.dumps(more), r.stderr)
    d.policies["dev"]["sandbox"] = {"devices": "durward.test/thing=one", "device_specs": specs.first}
    r = d.run(["true"], ["--policy", "dev", "--backend", "docker", "--image", "x"])
    t.ok(r.returncode == 125 and "gets no devices" in r.stderr, "an engine's container gets none", r.stderr)
    specs.write(specs.first, "x.json", spec({"deviceNodes": [ZERO]}, name="gone"))
    r = d.run(["true"], ["--policy", "dev"])
    t.ok(r.returncode == 125 and "no specification" in r.stderr, "a device that has gone: no sandbox", r.stderr)


def main(t):
    if not os.path.exists(LIBRARY):
        raise tap.Skip("no " + LIBRARY)
    d = durward.Durward(t)
    d.policy("plain", [])
    d.policy("dev", [])
    specs = Specs(t)
    if person.name() in (person.PLAIN, person.MAPPED):
        t.part(placed, t, d, specs)
        return
    t.part(works, t, d, specs)
    if os.geteuid() == 0:
        t.part(replaced, t, d, specs)
    else:
        t.skip("a node that is replaced", "needs root")
    t.part(placed, t, d, specs)
    t.part(refused, t, d, specs)


tap.run(lambda t: person.each(t, main, mapped=True), timeout=120)
