#!/usr/bin/python3 -B
"""A29: a sandbox in which one mechanism does not work must not start. A bubblewrap that leaves one of
them out stands in for such a machine; the command must not run, and the error must name the probe."""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, tap  # noqa: E402

# what is left out: ({option: how many arguments go with it, or what stands in its place}, what is put in
# front instead, the probe); or a command that is run in the sandbox's network before
WITHOUT = {
    "nothing": ({}, (), None),
    "seccomp": ({"--seccomp": 1}, (), "seccomp"),
    "dropped capabilities": ({"--cap-drop": 1}, ("--cap-add", "CAP_NET_ADMIN"), "capabilities"),
    "a PID namespace": ({"--unshare-pid": 0, "--as-pid-1": 0}, (), "pid 1"),
    "read-only binds": ({"--ro-bind": "--bind"}, (), "/proc/sys"),
    "a network without a way out": ("ip link add out0 type veth peer name out1", (), "interfaces"),
    "the route of all addresses to itself": ("ip route flush table local", (), " 443"),
}
WRAPPER = """#!/bin/sh
# bubblewrap with some of its arguments left out
n=$#
while [ "$n" -gt 0 ]; do
    a=$1
    shift
    n=$((n - 1))
    case $a in
%s
    esac
    set -- "$@" "$a"
done
%s
exec %s %s "$@"
"""


def wrapper(t, real, drop, add):
    before, drop = (drop + " || exit 9", {}) if isinstance(drop, str) else ("", drop)
    cases = "".join("    %s) a=%s ;;\n" % (option, how) if isinstance(how, str) else
                    "    %s) shift %d; n=$((n - %d)); continue ;;\n" % (option, how, how)
                    for option, how in drop.items())
    return t.write("bwrap", WRAPPER % (cases or "    --nothing) ;;", before, real, " ".join(add)), 0o755)


# The real one stands where sandboxes see it under another name; all in a mount namespace of its own.
PUT = 'mount --bind "$2" "$3" && mount --bind "$1" "$2" && shift 3 && exec "$@"'


def start(t, d, real, drop, add):
    path = wrapper(t, real, drop, add)
    mark = os.path.join(d.work, "ran")
    if os.path.exists(mark):
        os.unlink(mark)
    r = subprocess.run(["unshare", "-m", "sh", "-c", PUT, "sh", path, shutil.which("bwrap"), real, durward.program(), "run", "-c", d.conf, "--",
                        "touch", "ran"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, cwd=d.work, env=d.env, timeout=60)
    return r.returncode, r.stderr.decode(), os.path.exists(mark)


def main(t):
    if os.geteuid() != 0:
        raise tap.Skip("standing in for bubblewrap needs root")
    d = durward.Durward(t)
    d.policies = {"p": {"rules": []}}
    d.save()
    real = shutil.which("yes")
    for what, (drop, add, probe) in WITHOUT.items():
        status, err, ran = start(t, d, real, drop, add)
        if probe is None:
            t.eq((status, ran), (0, True), "A29 with all of them it starts (benign)") or t.diag(err)
        else:
            t.ok(status == 125 and not ran, "A29 without %s: the command does not run" % what, str(status), err)
            t.ok(probe in err, "A29 without %s: the error names the probe" % what, err)


tap.run(main, timeout=90)
