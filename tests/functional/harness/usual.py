"""Rows that hold behind each wall as with bubblewrap: the way out, commands, terminals."""
from . import durward
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
