#!/usr/bin/python3 -B
"""Sandboxes that are virtual machines: the gate is the only way out, credentials are injected, what is refused is recorded;
commands, terminals, files, watches, ports, limits as with bubblewrap; deaths that leave nothing."""
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, microvm, scene, tap, usual, walls  # noqa: E402

BOOT_S = 110  # a kernel starts, on a processor that may be a program
BOX = "/v1/sandboxes/%s/%s"


def way_out(t, s, c):
    began = time.monotonic()
    box = c.create(policy="coder", env={"COLOUR": "blue"}, publish=[{"port": 8000}])["id"]
    t.diag("its start took %.1f s" % (time.monotonic() - began))
    out = usual.way_out(t, c, box, "microvm", 20)

    def sh(command):
        return c.sh(box, command, timeout=60)[1].decode("utf-8", "replace")
    t.eq(sh("python3 -c \"import socket\nu=socket.socket(2,2); u.connect(('93.184.216.34',4433))\ntry: u.send(b'x'); u.recv(9)\n"
            "except OSError as e: print(e.errno)\""), "1\n", "a datagram to elsewhere is refused")
    t.ok(tap.wait_for(lambda: [r for r in s.d.records() if "93.184.216.34" in json.dumps(r) and "4433" in json.dumps(r)], 15, 0.2),
         "and recorded")
    t.ok(re.fullmatch(r"\d+\.\d+.*\n1\n", sh("uname -r; grep -c : /proc/net/dev")) and
         sh("cat /proc/version") != open("/proc/version").read(), "the kernel is its own; no interface but lo")
    return box, [out]


def commands(t, c, box):
    usual.streams(t, c, box, 3)
    t.eq(c.sh(box, "sha256sum <deep/er/blob >/dev/null; id -u; rm -r deep; echo *", timeout=30), (0, b"0\n*\n"),
         "and is what a command sees")
    usual.long_output(t, c, box, 1000000)


def terminal(t, d, box):
    x = usual.terminal(t, d, box, 15)
    x.type("exit 3\n")
    t.eq(x.wait(), 3, "and the status")


def watches(t, c, box):
    sock, held = c.upgrade(BOX % (box, "files/watch"), "durward-watch", {})
    sock.settimeout(30)
    f = sock.makefile("rb")
    t.has((held + f.readline()).decode() if b"\n" not in held else held.decode(), "ready", "a watch begins")
    c.sh(box, "touch last", timeout=30)
    seen = [json.loads(f.readline())]
    while seen[-1].get("path") != "last":
        seen.append(json.loads(f.readline()))
    t.ok(seen, "and tells of what a command makes")
    sock.close()


SERVER = b"""import socket
s = socket.socket()
s.bind(("127.0.0.1", 8000))
s.listen(8)
while True:
    c = s.accept()[0]
    c.recv(9999)
    c.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\nfrom inside")
    c.close()
"""


def ports(t, c, box):
    c.write(box, "/workspace/s.py", SERVER)
    c.sh(box, "(python3 -S s.py >/dev/null 2>&1 &)", timeout=30)
    at = c.show(box)["published"][0]["address"]

    def served():
        return subprocess.run(["curl", "-s", "-m", "10", "http://%s/" % at], capture_output=True, text=True).stdout
    t.eq(tap.wait_for(served, 60, 0.3), "from inside", "a server inside serves, by a published port, who is outside")


def limits(t, c, box):
    code, out = c.sh(box, "ulimit -n; for i in $(seq 100); do sleep 5 & done 2>&1 | tail -1", timeout=60)
    t.ok(b"64\n" in out and (code != 0 or b"fork" in out), "open files, and processes", code, out[-200:])
    code, out = c.sh(box, "python3 -c \"x=bytearray(300<<20)\"", timeout=60)
    t.ok(code not in (0, 124), "memory: whoever takes too much is ended", code, out[-200:])
    t.eq(c.sh(box, "echo still", timeout=30), (0, b"still\n"), "and the sandbox goes on")


def host(t):
    """What QEMU and virtiofsd are on the host."""
    if os.geteuid() != 0:
        t.skip("what the host's processes are", "only root can look")
        return
    for pid, name in microvm.running().items():
        with open("/proc/%d/status" % pid) as f:
            s = dict(x.rstrip("\n").split(":\t", 1) for x in f if ":\t" in x)
        apart = all(os.readlink("/proc/%d/ns/%s" % (pid, n)) != os.readlink("/proc/self/ns/" + n) for n in ("net", "user"))
        seen = set(os.listdir("/proc/%d/root" % pid))
        if name.startswith("qemu"):
            t.ok(int(s["CapEff"], 16) == 0 and s["Seccomp"] == "2" and apart and not seen & {"home", "root", "etc", "var", "sandbox"},
                 "QEMU: no capability, a filter, a network of its own with nobody in it, no file but programs", s["CapEff"], seen)
        elif name.startswith("virtiofsd"):
            t.ok(s["Seccomp"] == "2" and int(s.get("Seccomp_filters", 2)) >= 2 and apart and not seen & {"home", "boot"},
                 "virtiofsd: a filter of ours and its own, the sandbox's root alone", s.get("Seccomp_filters"), seen)
        else:
            t.eq(int(s["CapEff"], 16), 0, "no capability of " + name)
            if name == "durward-trunk":
                t.eq(s["Seccomp"], "2", "a filter of durward-trunk")


def by_hand(t, d):
    t.write("d/work/story", "once")
    t.write("d/work/.netrc", "machine x password netrc-secret-0123456789")
    r = d.run(["sh", "-c", "cat story; cat .netrc; echo more >>story; cat; exit 3"], ["--policy", "coder"], save=False, stdin=b"in\n",
              timeout=BOOT_S)
    with open(os.path.join(d.work, "story")) as f:
        t.eq((r.returncode, r.stdout, f.read()), (3, "oncein\n", "oncemore\n"),
             "durward run: the directory is bound, its credential files are not seen") or t.diag(r.stderr)


READER = """grep -q . first second && touch seen
n=0; while [ $n -lt 40 ] && ! { grep -q TWO first && grep -q longer second && test -e third && ! test -e fourth; }; do n=$((n+1)); sleep 0.5; done
cat first second third; ls fourth 2>/dev/null
"""


def changes(t, d):
    """What the host changes in a bound directory is seen inside, by programs that have read the file before."""
    for name, text in (("first", "one\n"), ("second", "short\n"), ("fourth", "goes\n"), ("reader", READER)):
        t.write("d/work/" + name, text)

    def change():
        if tap.wait_for(lambda: os.path.exists(os.path.join(d.work, "seen")), BOOT_S, 0.1):
            t.write("d/work/first", "TWO\n")  # of the same length
            t.write("d/work/second", "much longer\n")
            t.write("d/work/third", "new\n")
            os.unlink(os.path.join(d.work, "fourth"))
    host = threading.Thread(target=change)
    host.start()
    r = d.run(["sh", "reader"], ["--policy", "coder"], save=False, timeout=BOOT_S)
    host.join()
    t.eq((r.returncode, r.stdout), (2, "TWO\nmuch longer\nnew\n"), "what the host changes in a bound directory is seen inside") or t.diag(r.stderr)


def deaths(t, d, c, box):
    controller = [pid for pid, r in d.roles() if r == "controller"][0]
    os.kill(controller, signal.SIGKILL)
    c.close()
    t.ok(c.taken_over(box), "the controller's SIGKILL: it is taken over", d.diagnostics())
    t.eq(c.sh(box, "echo still", timeout=30), (0, b"still\n"), "and goes on")
    trunk = [pid for pid, name in microvm.running().items() if name == "durward-trunk"]
    t.eq(len(trunk), 1, "one trunk")
    os.kill(trunk[0], signal.SIGKILL)
    t.ok(tap.wait_for(lambda: c.show(box)["state"] == "stopped", 10, 0.1), "the SIGKILL of its trunk: it is stopped")
    t.ok(tap.wait_for(lambda: not microvm.running(), 10, 0.1), "and nothing of it runs", microvm.running())


def doctor(t, d):
    r = d.command("doctor", "-c", d.conf, "--host", "--json")
    found = [x for x in json.loads(r.stdout)["findings"] if x["check"] == "microvm"]
    t.ok(len(found) == 1 and found[0]["state"] == "ok" and microvm.kernel() in found[0]["what"],
         "durward doctor finds QEMU and a kernel", r.stdout[-800:])


def main(t):
    why = microvm.needed()
    if why:
        raise tap.Skip(why)
    s = scene.Scene(t)
    d = s.d
    d.policies["coder"]["sandbox"] = {"backend": "microvm", "memory": "256MiB", "pids": 64, "files": 64}
    d.serve()
    c = api.Api(d.socket, timeout=BOOT_S)
    box, outputs = way_out(t, s, c)
    t.part(commands, t, c, box)
    t.part(terminal, t, d, box)
    t.part(watches, t, c, box)
    t.part(ports, t, c, box)
    t.part(host, t)
    t.part(walls.compare, t, "microvm", walls.found(c, box, timeout=60))
    t.part(limits, t, c, box)
    t.part(by_hand, t, d)
    t.part(changes, t, d)
    t.part(doctor, t, d)
    t.part(deaths, t, d, c, box)
    s.clean(outputs)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=300)
