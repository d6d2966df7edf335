"""Rows that hold behind each wall as with bubblewrap: the way out, commands, terminals."""
import os

from . import api, durward, tap
from .terminal import Terminal


def way_out(t, c, box, backend, seconds=10):
    """Of a box of policy `coder` of a Scene with COLOUR=blue: what curl gets. -> what it printed"""
    t.eq(c.show(box)["backend"], backend, "it is shown as what it is")
    code, out = c.sh(box, "env; cat /etc/resolv.conf; curl -s https://api.github.com/user; "
                          "curl -s -o /dev/null -w '%{http_code}' https://api.github.com/gists/1; "
                          "curl -s https://api.openai.com/v1/models -H \"Authorization: Bearer $OPENAI_API_KEY\"",
                     timeout=60)
    t.ok(code == 0 and b"octo" in out and b"403" in out and b"COLOUR=blue" in out and b"198.18.0.1" in out,
         "curl is served by the policy, with the credentials", out)

    def sh(command):
        return c.sh(box, command, timeout=6 * seconds)[1].decode("utf-8", "replace")
    t.has(sh("curl -s -m %d https://evil.example.net/; echo $?" % seconds), "6", "a name that no rule has is unknown")
    t.has(sh("curl -s -m %d -i http://93.184.216.34/; curl -sk -m %d -i https://169.254.169.254/" % (seconds, seconds)), "denied ",
          "an address is answered by the gate: denied")
    return out


def streams(t, c, box, seconds=2):
    r = c.exec(box, "echo o; echo e >&2; exit 7", split=True)
    t.eq((r["stdout"], r["stderr"], r["exit_code"]), ("o\n", "e\n", 7), "output apart, exit status")
    r = c.exec(box, "(sleep 100; echo x) & echo begun; sleep 100", timeout=seconds)
    t.eq((r["exit_code"], r["timed_out"], r["output"]), (124, True, "begun\n"), "a time-out is 124")
    f = c.frames(box, command="read x; echo got $x")
    f.send(0, b"that\n")
    t.eq(f.finish()[0], b"got that\n", "input")
    f.close()
    blob = bytes(range(256)) * 4096
    c.write(box, "/workspace/deep/er/blob", blob)
    t.eq(c.read(box, "/workspace/deep/er/blob"), blob, "a file goes in and out, 8-bit clean")


def long_output(t, c, box, n):
    r = c.exec(box, "head -c %d /dev/zero | tr '\\0' x; echo end" % n, max_output=2 * n, timeout=60)
    t.ok(len(r["output"]) == n + 4 and r["output"].endswith("end\n"), "a long output, to its last byte", len(r["output"]))


def terminal(t, d, box, seconds=8):
    """-> a terminal whose shell goes on"""
    words = [durward.program(), "sandbox", "exec", "--socket", d.socket, "-it", box, "/bin/sh", "-i"]
    x = Terminal(t, words, d.work, dict(d.env, TERM="xterm"), rows=30, cols=100)
    x.type("echo a$((20+2))b; tty; stty size\n")
    t.ok(x.see("a22b", seconds) and x.see("/dev/pts", seconds) and x.see("30 100", seconds), "a terminal, with the window's size", x.out)
    x.type("sh -c 'echo in its foreg\"\"round; exec sleep 100'\n")
    t.ok(x.see("in its foreground", seconds), "a command has the terminal", x.out)
    x.type("\x03")
    x.type("echo after-$?\n")
    t.ok(x.see("after-130", seconds), "Ctrl-C ends the command in front", x.out)
    return x


def volumes(t, c, policy, backend):
    """One that a sandbox of this backend writes to and one of bubblewrap's reads. -> the writer, which lives on; None: there are none"""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        t.skip("volumes", "no /dev/fuse")
        return None
    c.ask("POST", "/v1/volumes", {"name": "work", "policy": policy, "size": 1 << 20, "access": "many"})
    one = c.create(policy=policy, volumes=["work:/data"])["id"]
    two = c.create(policy=policy, backend="bwrap", volumes=["work:/data:ro"])["id"]
    t.eq(c.sh(one, "echo from-within >/data/f; cat /data/f", timeout=30), (0, b"from-within\n"), "a volume is written to")
    t.eq(c.sh(two, "cat /data/f"), (0, b"from-within\n"), "which a sandbox of bubblewrap's reads at once")
    code, said = c.sh(one, "dd if=/dev/zero of=/data/big bs=64k count=32 2>&1", timeout=30)
    t.ok(code != 0 and b"No space" in said, "its size is a bound", said)
    t.eq(c.sh(one, "echo more >/data/g; rm /data/big; cat /data/f", timeout=30), (0, b"from-within\n"), "and what is in it stays")
    t.eq(c.show(one)["backend"], backend, "all of this under " + backend)
    c.delete(two)
    return one


def pauses(t, c, box, timeout=20):
    """It is paused and resumed, and what runs in it goes on."""
    def verb(what):
        return c.ask("POST", "/v1/sandboxes/%s/%s" % (box, what))
    c.sh(box, "touch goes; (while test -e goes; do echo >>tick; sleep 0.2; done) >/dev/null 2>&1 &", timeout=timeout)
    if api.refused(verb, "pause") == (501, "unsupported"):
        t.skip("pause", "there is no cgroup freezer here that we may use")
        return
    t.eq(c.show(box)["state"], "paused", "it is paused")
    verb("resume")
    at = int(c.sh(box, "wc -c <tick", timeout=timeout)[1])
    t.ok(tap.wait_for(lambda: int(c.sh(box, "wc -c <tick", timeout=timeout)[1]) > at, timeout, 0.1), "and resumed: what ran goes on")
    c.remove(box, "/workspace/goes")


def snapshots(t, c, box, policy, backend, timeout=20):
    """Of a sandbox that kept k and /opt/there: another of its files under each wall. -> the one under this wall, which lives on"""
    c.ask("POST", "/v1/snapshots", {"sandbox": box, "name": "of-" + backend})
    ids = []
    for wall in (backend, "bwrap"):
        ids.append(c.create(policy=policy, snapshot="of-" + backend, backend=wall)["id"])
        t.eq((c.show(ids[-1])["backend"], c.sh(ids[-1], "cat k /opt/there", timeout=timeout)), (wall, (0, b"kept\nx\n")),
             "a snapshot of its files, under " + wall)
    c.delete(ids[1])
    c.ask("DELETE", "/v1/snapshots/of-" + backend)
    return ids[0]
