#!/usr/bin/python3 -B
"""Archives made to get out of the directory that they are unpacked into, or to fill the disk (rows
G7 and G8 of the catalogue): nothing appears outside, nothing is left of a refused one."""
import io
import os
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, person, rootfs, tap  # noqa: E402

SYM, LNK, DIR = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
m = rootfs.member


def corpus(canary):
    """name, members, whether it may be taken."""
    up = "../" * 12 + canary.lstrip("/")
    return (
        ("dot-dot", [m("../evil", content=b"x")], False),
        ("dot-dot deep", [m("a/b/../../../evil", content=b"x")], False),
        ("dot-dot to a file of ours", [m(up, content=b"x")], False),
        ("absolute", [m(canary, content=b"x")], True),
        ("through an absolute link", [m("l", SYM, link=os.path.dirname(canary)),
                                      m("l/canary", content=b"x")], False),
        ("through a relative link", [m("l", SYM, link=os.path.dirname(up)),
                                     m("l/canary", content=b"x")], False),
        ("through a link to a link", [m("a", SYM, link="b"), m("b", SYM, link="/tmp"),
                                      m("a/evil", content=b"x")], False),
        ("through a link within", [m("d", DIR, mode=0o755), m("l", SYM, link="d"),
                                   m("l/x", content=b"x")], False),
        ("over a link", [m("l", SYM, link=canary), m("l", content=b"x")], True),
        ("over a hard link to a link", [m("l", SYM, link=canary), m("h", LNK, link="l"),
                                        m("h", content=b"x")], False),
        ("hard link outside", [m("h", LNK, link=canary), m("h", content=b"x")], False),
        ("hard link by dot-dot", [m("h", LNK, link=up)], False),
        ("hard link through a link", [m("l", SYM, link=os.path.dirname(canary)),
                                      m("h", LNK, link="l/canary")], False),
        ("hard link to a directory", [m("d", DIR, mode=0o755), m("h", LNK, link="d")], False),
        ("hard link to itself", [m("h", LNK, link="h")], False),
        ("directory over a link", [m("l", SYM, link=os.path.dirname(canary)),
                                   m("l", DIR, mode=0o777), m("l/canary", content=b"x")], True),
        ("the root as a link", [m(".", SYM, link="/tmp")], False),
        ("the root as a file", [m("./", content=b"x")], False),
        ("devices", [m("null", tarfile.CHRTYPE, devmajor=1, devminor=3),
                     m("sda", tarfile.BLKTYPE, devmajor=8, devminor=0),
                     m("fifo", tarfile.FIFOTYPE), m("ok", content=b"x")], True),
        ("a whiteout's device", [m("w", tarfile.CHRTYPE, devmajor=0, devminor=0),
                                 m("ok", content=b"x")], True),
        ("set-uid", [m("su", content=b"x", mode=0o6755), m("sticky", DIR, mode=0o1777)], True),
        ("strange modes", [m("none", DIR, mode=0), m("none/x", content=b"x", mode=0)], True),
        ("a long name", [m("n" * 256, content=b"x")], False),
        ("deep", [m("d/" * 300 + "x", content=b"x")], False),
        ("a link that is too long", [m("l", SYM, link="x" * 5000)], False),
        ("control characters", [m("a\x1b[2Jb\nc", content=b"x")], True),
        ("overlay's own attributes", [m("x", content=b"x", pax_headers={
            "SCHILY.xattr.user.overlay.opaque": "y", "SCHILY.xattr.trusted.overlay.redirect": "/",
            "SCHILY.xattr.security.capability": "x"})], True),
    )


def evil(t, d, canary):
    for name, members, taken in corpus(canary):
        r = d.command("image", "import", "-c", d.conf, "-", "evil",
                      stdin=rootfs.archive(members))
        t.eq(r.returncode, 0 if taken else 1, "G7 %s" % name) or t.diag(r.stderr)
        with open(canary) as f:
            content = f.read()
        if content != "untouched" or os.stat(canary).st_nlink != 1:
            t.ok(False, "G7 %s: a file outside was changed" % name)
        if taken:
            judge(t, name, os.path.join(d.dir, "state/images/evil/root"))
            r = d.command("image", "rm", "-c", d.conf, "evil")
            if r.returncode:
                t.ok(False, "G7 %s: what was taken can be removed" % name, r.stderr)
    t.eq(os.listdir(os.path.join(d.dir, "state/images")), [], "G7 nothing is left")
    t.eq(sorted(os.listdir(os.path.dirname(canary))), ["canary"], "G7 nothing appeared outside")
    t.ok(not os.path.exists("/tmp/evil"), "G7 nor in /tmp")


def judge(t, name, root):
    if os.geteuid() != 0:
        return # the files may be another uid's, with modes that shut us out
    bad = []
    for base, dirs, files in os.walk(root):
        for x in dirs + files:
            st = os.lstat(os.path.join(base, x))
            if st.st_mode & 0o6000 or st.st_mode & 0o170000 not in (0o040000, 0o100000, 0o120000):
                bad.append((x, oct(st.st_mode)))
            if st.st_uid == 0:
                bad.append((x, "of root"))
            if os.listxattr(os.path.join(base, x), follow_symlinks=False):
                bad.append((x, "has attributes"))
    t.eq(bad, [], "G7 %s: what lies there is harmless" % name)


def layered(t, d, canary):
    """A layer may not use a link of a lower one, nor whiteouts reach outside."""
    first = rootfs.archive([m("l", SYM, link=os.path.dirname(canary)), m("ok", content=b"x")])
    for name, members in (("a link of a lower layer", [m("l/canary", content=b"x")]),
                          ("a whiteout without a name", [m(".wh.", content=b"")]),
                          ("a whiteout of ..", [m("a/.wh...", content=b"")]),
                          ("a whiteout of .", [m(".wh..", content=b"")])):
        r = d.command("image", "import", "-c", d.conf, "-", "evil",
                      stdin=rootfs.docker_save([first, rootfs.archive(members)]))
        t.ok(r.returncode == 1 or name == "a whiteout of ..", "G7 %s" % name, r.stderr)
        d.command("image", "rm", "-c", d.conf, "evil")
    r = d.command("image", "import", "-c", d.conf, "-", "evil", stdin=rootfs.docker_save(
        [first, rootfs.archive([m("l/.wh.canary"), m("l/.wh..wh..opq")])]))
    t.ok(os.path.exists(canary), "G7 a whiteout through a link", r.stderr)
    d.command("image", "rm", "-c", d.conf, "evil")


def bombs(t, d):
    def limited(what, members_or_bytes, *flags):
        data = members_or_bytes if isinstance(members_or_bytes, bytes) else \
            rootfs.archive(members_or_bytes, "w:gz")
        r = d.command("image", "import", "-c", d.conf, *flags, "-", "bomb", stdin=data)
        t.ok(r.returncode == 1 and ("larger than" in r.stderr or "more than" in r.stderr),
             "G8 " + what, r.stderr)

    zeroes = [m("zero", content=bytes(40 << 20))]
    limited("a file that is larger than it may be", zeroes, "--max-size", "16")
    limited("many files that are", [m("f%d" % i, content=bytes(1 << 20)) for i in range(20)],
            "--max-size", "16")
    limited("too many entries", [m("f%d" % i) for i in range(3000)], "--max-files", "1000")
    limited("too many directories", [m("/".join("d%d" % (i // 10 ** k) for k in range(4)), DIR,
                                       mode=0o755) for i in range(3000)], "--max-files", "1000")
    sparse = io.BytesIO()
    with tarfile.open(fileobj=sparse, mode="w", format=tarfile.GNU_FORMAT) as f:
        huge = tarfile.TarInfo("huge")
        huge.size = 1 << 40
        sparse.write(huge.tobuf(tarfile.GNU_FORMAT))
    limited("a file that claims a tebibyte", sparse.getvalue())
    inner = rootfs.archive(zeroes, "w:gz")
    limited("a bomb inside of a layer", rootfs.docker_save([inner]), "--max-size", "16")
    r = d.command("image", "import", "-c", d.conf, "-", "cut", stdin=inner[:len(inner) // 2])
    t.ok(r.returncode == 1, "G8 a stream that is cut short", r.stderr)
    t.eq(os.listdir(os.path.join(d.dir, "state/images")), [], "G8 nothing is left of them")


def all_parts(t):
    d = durward.Durward(t)
    d.policies = {"p": {"rules": []}}
    d.save()
    t.mkdir("outside", 0o777)
    canary = t.write("outside/canary", "untouched", 0o666)
    t.part(evil, t, d, canary)
    t.part(layered, t, d, canary)
    t.part(bombs, t, d)


tap.run(lambda t: person.each(t, all_parts, mapped=True), timeout=120)
