#!/usr/bin/python3 -B
"""Terminals: an interactive shell in `durward run` with prompt, job control, window size, Ctrl-C,
a full-screen program, the exit status; and the caller's terminal as it was afterwards."""
import os
import shutil
import signal
import sys
import termios

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scene, tap  # noqa: E402
from harness.terminal import Terminal  # noqa: E402


def start(t, s, *argv, flags=(), **kw):
    d = s.d
    d.save()
    words = [durward.program(), "run", "-c", d.conf] + list(flags) + ["--"] + list(argv)
    return Terminal(t, words, d.work, dict(d.env, TERM="xterm"), **kw)


def in_front():
    """The command that the shell was told to run is there."""
    return tap.wait_for(lambda: [x for x in tap.descendants() if x[1] == "sleep 100"], 8)


def shell(t, s):
    c = start(t, s, "/bin/sh", "-i", flags=["-e", "PS1=here> "], rows=30, cols=100)
    t.ok(c.see("here> "), "an interactive shell shows its prompt", c.out)
    c.type("echo a$((20+2))b; tty\n")
    t.ok(c.see("a22b"), "it runs what is typed", c.out)
    t.ok(c.see("/dev/"), "it has a terminal of the sandbox", c.out)
    c.type("stty size\n")
    t.ok(c.see("30 100"), "with the window's size", c.out)
    c.size(41, 97)
    os.kill(c.pid, signal.SIGWINCH)
    t.ok(tap.wait_for(lambda: (c.type("stty size\n"), c.see("41 97", 1))[1], 5, 0.2),
         "a change of the window's size arrives", c.out)
    c.type("sleep 100\n")
    in_front()
    c.type("\x03")
    c.type("echo after-$?\n")
    t.ok(c.see("after-130"), "Ctrl-C ends the command in front, not the shell", c.out)
    c.type("sleep 100\n")
    in_front()
    c.type("\x1a")
    c.type("jobs\n")
    t.ok(c.see("Stopped") or b"topped" in c.out, "Ctrl-Z stops it: job control", c.out)
    c.type("kill %1; bg; echo fg-ok\n")
    t.ok(c.see("fg-ok"), "and the shell goes on", c.out)
    c.type("sh -c 'stty -echo; echo rea\"\"dy; read x; stty echo; echo got-$x'\n")
    c.see("ready")
    c.type("hidden-words\n")
    t.ok(c.see("got-hidden-words"), "a program can turn echo off", c.out)
    c.type("curl -s -o /dev/null -w 'code %{http_code}\\n' https://api.github.com/user\n")
    t.ok(c.see("code 200"), "requests work from it", c.out)
    c.type("exit 9\n")
    t.eq(c.wait(), 9, "its exit status is passed on")
    t.eq(termios.tcgetattr(c.slave)[:4], c.before[:4], "the caller's terminal is as before")


def screen(t, s):
    program = shutil.which("vi") or shutil.which("less")
    if not program:
        t.skip("a full-screen program", "neither vi nor less is installed")
        return
    t.write("d/work/story", "".join("line %d of the story\n" % i for i in range(200)))
    c = start(t, s, program, "story", rows=20, cols=70)
    t.ok(c.see("line 5 of the story"), "%s shows the file" % program, c.out)
    if program.endswith("vi"):
        c.type("Gochanged in here\x1b:wq\r")
    else:
        c.type("q")
    t.eq(c.wait(), 0, "and ends")
    if program.endswith("vi"):
        with open(os.path.join(s.d.work, "story")) as f:
            t.has(f.read(), "changed in here", "what was written is there")
    t.eq(termios.tcgetattr(c.slave)[:4], c.before[:4], "the terminal is as before")


def ends(t, s):
    c = start(t, s, "/bin/sh", "-c", "kill -TERM $$")
    t.eq(c.wait(), 143, "128+n for a signal")
    c = start(t, s, "/bin/sh", "-c", "echo up; sleep 100")
    t.ok(c.see("up"), "a long command runs", c.out)
    os.kill(c.pid, signal.SIGTERM)
    t.ok(c.wait() not in (None, 0), "SIGTERM to durward ends it", str(c.status))
    t.eq(termios.tcgetattr(c.slave)[:4], c.before[:4], "the terminal is restored then too")
    c = start(t, s, "/bin/sh", "-c", "echo up; sleep 100")
    c.see("up")
    os.kill(c.pid, signal.SIGKILL)
    c.wait()
    left = tap.wait_for(lambda: not [x for x in tap.descendants() if "sleep 100" in x[1] or
                                     x[1].startswith("durward: ")], 4)
    t.ok(left, "SIGKILL to durward leaves no process", *[str(x) for x in tap.descendants()])
    c = start(t, s, "/bin/sh", "-c", "trap 'echo hup > hup' HUP; echo up; sleep 3; sleep 3")
    c.see("up")
    os.close(c.master)
    c.master = os.open("/dev/null", os.O_RDWR)
    tap.wait_for(lambda: not [x for x in tap.descendants() if "durward: " in x[1]], 8)
    t.ok(not [x for x in tap.descendants() if "durward: " in x[1]],
         "a closed terminal ends all of it")
    c.wait(3)


def main(t):
    s = scene.Scene(t)
    for part in (shell, screen, ends):
        t.part(part, t, s)
    s.clean((), "terminal")


tap.run(main)
