"""What the checks of the tree share: where the sources are, C text without comments, TAP."""
import os
import re
import subprocess
import sys

# The folders with C of the product; what their rooms may include is in LAYOUT.
LAYERS = ("lib", "rules", "audit", "ca", "secrets", "proxy", "broker", "fleet", "controller", "cli")

ROOT = os.path.abspath(os.environ.get("srcdir") or os.path.join(os.path.dirname(__file__), "..", ".."))


def walk(folder, endings):
    """Paths below a folder, relative to the root, sorted."""
    found = []
    for where, dirs, files in os.walk(os.path.join(ROOT, folder)):
        dirs[:] = [d for d in dirs if not d.startswith(".") and d != "__pycache__"]
        for name in files:
            if name.endswith(endings):
                found.append(os.path.relpath(os.path.join(where, name), ROOT))
    return sorted(found)


def product_sources():
    return [p for layer in LAYERS for p in walk(layer, (".c", ".h"))]


def all_sources():
    return product_sources() + walk("tests", (".c", ".h"))


def written_sources():
    """And what measures: how it is written counts, too."""
    return all_sources() + walk("programs", (".c", ".h")) + walk("bench", (".c", ".h"))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def _blank(match):
    text = match.group(0)
    if text[0] == "/":
        return " " + "\n" * text.count("\n")
    return text[0] + text[0]


def code(path):
    """The text of a C file with comments and the content of literals taken out; same lines."""
    return blanked(read(path))


def blanked(text):
    return _TOKEN.sub(_blank, text)


def in_git():
    return subprocess.run(["git", "-C", ROOT, "rev-parse", "--git-dir"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0 if _has_git() else False


def _has_git():
    return os.path.exists(os.path.join(ROOT, ".git"))


def git(*args):
    out = subprocess.run(["git", "-c", "safe.directory=*", "-C", ROOT] + list(args),
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return out.stdout.decode("utf-8", "replace") if out.returncode == 0 else ""


class Tap:
    """Each result has its own findings; the plan comes last."""

    def __init__(self):
        self.count = 0

    def result(self, name, findings):
        self.count += 1
        print("%sok %d - %s" % ("not " if findings else "", self.count, name))
        for f in findings:
            print("# " + f)

    def skip(self, name, why):
        self.count += 1
        print("ok %d - %s # SKIP %s" % (self.count, name, why))

    def done(self):
        print("1..%d" % self.count)
        sys.exit(0)
