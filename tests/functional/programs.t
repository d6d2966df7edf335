#!/usr/bin/python3 -B
"""A role is a program of its own: what each may be linked with, how large it is, that an upgrade under a
running daemon changes nothing, and that a role works for nobody but its own parent and build."""
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scene, tap  # noqa: E402

EVENT, JSON, TLS, HTTP = {"libevent-2.1"}, {"libjansson"}, {"libssl", "libcrypto"}, {"libhttp_parser", "libnghttp2"}
# What the dynamic linker maps for each program, beside the C library. None but `archive`, which is no role, reads
# archives; none but the parent and the controller reads YAML.
LIBRARIES = {
    "parent": EVENT | JSON | {"libcrypto", "libexpat", "libyaml-0"},  # expat: where Maven's and NuGet's settings find packages
    "signer": EVENT | JSON | {"libcrypto", "libseccomp"},
    "vault": EVENT | JSON | TLS | HTTP | {"libexpat", "libseccomp"},
    "dialer": EVENT | JSON | TLS | {"libhttp_parser", "libcares", "libseccomp"},
    "gate": EVENT | JSON | TLS | HTTP | {"libmnl", "libz", "libseccomp"},
    "injector": EVENT | JSON | TLS | HTTP | {"libseccomp"},
    "logger": EVENT | JSON | {"libcrypto", "libzstd", "libseccomp"},
    "exporter": EVENT | JSON | TLS | HTTP | {"libseccomp"},
    "controller": EVENT | JSON | TLS | {"libevent_core-2.1", "libevent_openssl-2.1", "libm", "libseccomp", "libsqlite3",
                                        "libyaml-0"},
    "builder": EVENT | JSON | {"libfuse3", "libhttp_parser", "libmnl", "libnftnl", "libseccomp"},
    "archive": JSON | {
        "libarchive", "libcrypto",
        # by libarchive
        "libacl", "libbz2", "libgcc_s", "libicudata", "libicuuc", "liblz4", "liblzma", "libm", "libnettle",
        "libstdc++", "libxml2", "libz", "libzstd"},
}
GATE_TEXT_KIB = 600
OF_EVERY = {"libc", "linux-vdso", "ld-linux-x86-64", "ld-linux-aarch64", "libasan", "libubsan", "libm", "libgcc_s",
            "libstdc++", "libdl", "libpthread", "librt"}


def programs():
    return os.path.join(os.path.dirname(os.path.dirname(durward.program())), "libexec", "durward")


def libraries(path):
    out = subprocess.run(["ldd", path], capture_output=True, text=True, timeout=20).stdout
    return {os.path.basename(line.split()[0]).split(".so")[0] for line in out.splitlines() if line.split()}


def text_kib(path):
    out = subprocess.run(["size", "-A", path], capture_output=True, text=True, timeout=20).stdout
    found = re.search(r"^\.text +(\d+)", out, re.M)
    return int(found.group(1)) // 1024 if found else None


def linked(t):
    for name, may in sorted(LIBRARIES.items()):
        path = os.path.join(programs(), name)
        has = libraries(path) - (OF_EVERY - may if durward.sanitized() else OF_EVERY - may)
        t.diag("%-10s %5s KiB of text of ours; %s" % (name, text_kib(path), " ".join(sorted(has))))
        t.eq(sorted(has - may), [], "%s maps nothing that it does not call" % name)
    if durward.sanitized():
        t.skip("a gate's text", "a sanitizer build is larger")
    else:
        t.ok(text_kib(os.path.join(programs(), "gate")) <= GATE_TEXT_KIB, "a gate's text is at most %d KiB" %
             GATE_TEXT_KIB)


def alone(t):
    for name, more in (("gate", []), ("archive", ["pack"])):
        for words, what in (([], "without a build"), (["0.0-other"] + more, "of another build")):
            r = subprocess.run(["durward: " + name] + words, executable=os.path.join(programs(), name),
                               capture_output=True, text=True, timeout=10)
            t.ok(r.returncode == 3 and r.stderr.startswith("durward: "),
                 "%s started %s ends with 3 and says why" % (name, what), "%d %s" % (r.returncode, r.stderr))


def made(s):
    """A sandbox of the daemon, and `true` in it -> what failed, or nothing."""
    r = s.d.command("sandbox", "create", "--policy", "coder", "--socket", s.d.socket)
    if r.returncode == 0:
        r = s.d.command("sandbox", "exec", "--socket", s.d.socket, r.stdout.strip(), "--", "true")
    return "" if r.returncode == 0 else "%d %s" % (r.returncode, r.stderr)


def upgraded(t):
    """The files are replaced by ones that would fail; the daemon starts what it opened."""
    own = t.path("stage")
    shutil.copytree(os.path.dirname(os.path.dirname(programs())), own)
    os.environ["DURWARD"] = os.path.join(own, "bin", "durward")
    s = scene.Scene(t)
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    t.eq(gate.get(scene.PLAIN, "/before").status, 200, "a daemon of these programs serves")
    t.eq(made(s), "", "and makes sandboxes")
    folder = os.path.join(own, "libexec", "durward")
    for name in list(LIBRARIES) + ["durward-init"]:
        path = os.path.join(folder, name)
        os.rename(path, path + ".old")
        shutil.copy("/bin/false", path)
    for role in ("gate", "dialer", "signer"):
        old = [pid for pid, r in s.d.roles() if r == role]
        os.kill(old[0], signal.SIGKILL)
        t.ok(tap.wait_for(lambda: [p for p, r in s.d.roles() if r == role and p not in old], 10),
             "a %s that died is started again from the program of before" % role)
    t.ok(tap.wait_for(lambda: status(gate) == 200, 15), "and requests go on")
    t.eq(made(s), "", "and a sandbox's process 1 is the one of before")
    t.eq(s.d.stop(), 0, "the daemon ends well")
    r = s.d.command("run", "--no-bind", "--", "true")
    t.ok(r.returncode == 125, "a new one finds the new files, which are none of ours", "%d %s" % (r.returncode, r.stderr))
    os.remove(os.path.join(folder, "gate"))
    for name in set(LIBRARIES) - {"gate"} | {"durward-init"}:
        os.rename(os.path.join(folder, name + ".old"), os.path.join(folder, name))
    r = s.d.command("run", "--no-bind", "--", "true")
    t.ok(r.returncode == 125 and "'gate' is not installed" in r.stderr, "a missing program is named", r.stderr)


def status(gate):
    try:
        return gate.get(scene.PLAIN, "/after").status
    except (OSError, EOFError, RuntimeError) as e:
        return str(e)


def main(t):
    linked(t)
    alone(t)
    upgraded(t)


tap.run(main)
