#!/usr/bin/python3 -B
"""`make -jN all tests/stage.stamp` makes each thing once: an archive that two write at once is spoilt."""
import collections
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, tap  # noqa: E402


def wanted(t, build, name, edit):
    """What a build from nothing would run, with the makefile so edited: {archive or program: how often it is made}."""
    with open(os.path.join(build, "Makefile")) as f:
        text = re.sub(r"^include .*\.Po\b.*\n", "", f.read(), flags=re.M)  # which -B would make anew, in earnest
    path = t.path(name)
    with open(path, "w") as f:
        f.write(edit(text))
    # by another name, so that what is asked to be made anew is not the makefile of this build
    r = subprocess.run(["make", "-n", "-B", "-j2", "-f", path, "MAKE=make -f %s" % path, "all", "tests/stage.stamp"], cwd=build,
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                       env=dict(os.environ, MAKEFLAGS="", MFLAGS=""))
    if r.returncode != 0:
        raise RuntimeError(r.stderr[-1000:])
    return collections.Counter(re.findall(r"\bar cr[a-zA-Z]* (\S+\.a)\b", r.stdout))


def main(t):
    build = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(durward.program()))))
    if not os.path.exists(os.path.join(build, "Makefile")):
        raise tap.Skip("the program under test lies in no build directory: %s" % build)
    made = wanted(t, build, "as-it-is", lambda text: text)
    t.ok(len(made) >= 5 and set(made.values()) == {1}, "each archive is made once", str(made))

    def racing(text):
        return text.replace("\ntests/stage.stamp: all\n", "\ntests/stage.stamp:\n\t$(MAKE) all\n", 1)
    made = wanted(t, build, "racing", racing)
    t.ok(max(made.values()) > 1, "and did the stage make it all by itself, this would be seen", str(made))


tap.run(main, timeout=240)
