"""Looks for a secret in every form in which it could lie about.

The secret is made at run time; needles are its raw bytes, base64 and base64url at the three
alignments, hexadecimal in both cases, percent encoding (all bytes, both cases, and the usual
one), UTF-16 of both byte orders."""
import base64
import ctypes
import os
import struct
import subprocess
import tempfile
import time
import urllib.parse

FINDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "peers", "finder.c")
LARGE = 1 << 16  # bytes from which on the compiled search is worth its call
_library = []


def canary(prefix=b"", n=36):
    """A secret nobody has seen: printable, with no repeats worth finding by chance."""
    if isinstance(prefix, str):
        prefix = prefix.encode()
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    return prefix + bytes(alphabet[b % 62] for b in os.urandom(n))


def forms(secret):
    """{bytes to look for: its name}."""
    s = secret if isinstance(secret, bytes) else secret.encode()
    found = {s: "raw"}
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + s)
        # only characters that are made of the secret's bits alone
        first = {0: 0, 1: 2, 2: 3}[shift]
        usable = (8 * (shift + len(s))) // 6
        part = text[first:usable]
        found[part] = "base64+%d" % shift
        found[part.replace(b"+", b"-").replace(b"/", b"_")] = "base64url+%d" % shift
    found[s.hex().encode()] = "hex"
    found[s.hex().upper().encode()] = "HEX"
    found["".join("%%%02x" % b for b in s).encode()] = "percent"
    found["".join("%%%02X" % b for b in s).encode()] = "PERCENT"
    found[urllib.parse.quote(s, safe="").encode()] = "percent-usual"
    found[s.decode("latin-1").encode("utf-16-le")] = "utf-16le"
    found[s.decode("latin-1").encode("utf-16-be")] = "utf-16be"
    found[s] = "raw"
    return found


def library():
    """peers/finder.c, compiled once a process."""
    if not _library:
        with tempfile.TemporaryDirectory(prefix="durward-finder-") as folder:
            path = os.path.join(folder, "finder.so")
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", path, FINDER], check=True)
            lib = ctypes.CDLL(path)
        lib.finder_new.restype = ctypes.c_void_p
        lib.finder_search.restype = ctypes.c_size_t
        _library.append(lib)
    return _library[0]


class Finder:
    """All needles at once in a large buffer."""

    def __init__(self, needles):
        self.needles, self.lib = list(needles), library()
        count = len(self.needles)
        self.found = (ctypes.c_uint8 * max(count, 1))()
        self.handle = ctypes.c_void_p(self.lib.finder_new(
            (ctypes.c_char_p * count)(*self.needles), (ctypes.c_size_t * count)(*map(len, self.needles)), ctypes.c_size_t(count)))
        if not self.handle:
            raise ValueError("needles that the finder does not take")

    def __del__(self):
        self.lib.finder_free(self.handle)

    def search(self, data):
        """[needles that are in it], in their order"""
        n = self.lib.finder_search(self.handle, ctypes.c_char_p(data), ctypes.c_size_t(len(data)), self.found)
        return [x for x, yes in zip(self.needles, self.found) if yes] if n else []


class Scanner:
    """add() secrets; search() buffers; .hits are (secret's name, form, where)."""

    def __init__(self, **secrets):
        self.needles = {}
        self.longest = 0
        self.finder = None
        self.birth = time.time()
        self.files = 0
        self.bytes = 0
        self.hits = []
        for name, value in secrets.items():
            self.add(name, value)

    def add(self, name, value):
        for needle, form in forms(value).items():
            if len(needle) < 12:
                raise ValueError("too short a secret for a scan")
            self.needles[needle] = (name, form)
            self.longest = max(self.longest, len(needle))

    def search(self, data, where):
        if isinstance(data, str):
            data = data.encode("utf-8", "surrogateescape")
        self.bytes += len(data)
        if len(data) < LARGE:
            inside = [x for x in self.needles if x in data]
        else:
            if self.finder is None or self.finder.needles != list(self.needles):
                self.finder = Finder(self.needles)
            inside = self.finder.search(bytes(data))
        found = [self.needles[x] + (where,) for x in inside]
        self.hits += found
        return found

    def pieces(self, blocks, where):
        """Search a sequence of blocks as one stream: a needle may lie across two of them."""
        tail = b""
        for block in blocks:
            joined = tail + block
            self.search(joined, where)
            self.bytes -= len(tail)
            tail = joined[-(self.longest - 1):]

    def file(self, path):
        self.files += 1
        with open(path, "rb") as f:
            self.pieces(iter(lambda: f.read(1 << 20), b""), path)

    def tree(self, top):
        for folder, _, names in os.walk(top):
            for n in names:
                path = os.path.join(folder, n)
                if os.path.isfile(path) and not os.path.islink(path):
                    try:
                        self.file(path)
                    except OSError:
                        pass

    def report(self):
        return ["%s as %s in %s" % h for h in self.hits[:20]]


class _Frames:
    """Cuts the stream of inside/dump.py into (name, piece)."""

    def __init__(self, blocks):
        self.blocks, self.buf = iter(blocks), bytearray()

    def take(self, n):
        while len(self.buf) < n:
            try:
                self.buf += next(self.blocks)
            except StopIteration:
                return None
        with memoryview(self.buf) as view:
            out = bytes(view[:n])
        del self.buf[:n]
        return out

    def __iter__(self):
        while True:
            head = self.take(12)
            if head is None:
                return
            size, length = struct.unpack(">IQ", head)
            name = self.take(size).decode("utf-8", "surrogateescape")
            yield name, self.take(length)


def scan_sandbox(test, sandbox, scanner, share="new", least=1000):
    """Search all that a process inside can read; of files older than the secret what `share` says (inside/dump.py).
    Prints files and bytes."""
    before, files, older, kinds = scanner.bytes, 0, 0, {}
    last, tail, hits0 = None, b"", len(scanner.hits)
    birth = repr(scanner.birth)
    for name, data in _Frames(sandbox.stream("dump.py", birth, share)):
        if name.startswith("count:"):
            older = int(data)
            continue
        if name != last:
            files, last, tail = files + 1, name, b""
            kind = name.split("/")[1] if name.startswith("/") else "env"
            kinds[kind] = kinds.get(kind, 0) + 1
        joined = tail + data
        scanner.search(joined, "sandbox:" + name)
        scanner.bytes -= len(tail)
        tail = joined[-(scanner.longest - 1):]
    scanner.files += files
    test.diag("sandbox scan: %d files, %d bytes read; %d files not read whose last change is older "
              "than the secret; %s" % (files, scanner.bytes - before, older, kinds))
    test.ok(files >= least, "the scan read at least %d files inside" % least, "%d" % files)
    test.ok(kinds.get("env", 0) > 3 and kinds.get("proc", 0) > 50,
            "the scan read the environment and /proc inside", str(kinds))
    hits = scanner.hits[hits0:]
    test.tally(canaries=len(hits), searched=scanner.bytes - before)
    test.ok(not hits, "0 copies of a secret in the sandbox", *["%s as %s in %s" % h for h in hits])


def mappings(pid):
    """[(start, end, rights, name)]"""
    with open("/proc/%d/maps" % pid) as f:
        for line in f:
            part = line.split(None, 5)
            a, b = (int(x, 16) for x in part[0].split("-"))
            yield a, b, part[1], part[5].strip() if len(part) > 5 else ""


def process_memory(pid):
    """(blocks of every readable mapping, names of those that cannot be read)."""
    from . import durward  # it imports this module
    refused, shadow = [], durward.sanitized()

    def blocks():
        with open("/proc/%d/mem" % pid, "rb", buffering=0) as mem:
            for start, end, rights, name in mappings(pid):
                if "r" not in rights or name in ("[vvar]", "[vsyscall]", "[vvar_vclock]"):
                    continue
                if shadow and end - start > 1 << 32:
                    continue  # AddressSanitizer's shadow: terabytes, and no copy of anything
                at = start
                while at < end:
                    try:
                        mem.seek(at)
                        data = mem.read(min(1 << 20, end - at))
                    except OSError:
                        if any(a <= at < b for a, b, _, _ in mappings(pid)):  # else it has shrunk meanwhile: a heap does
                            refused.append(name or "%x-%x" % (start, end))
                        break
                    if not data:
                        break
                    at += len(data)
                    yield data if data.count(0) < len(data) else b"\0"  # never touched
                yield b"\0" * 256  # mappings are not neighbours
        with open("/proc/%d/environ" % pid, "rb") as f:
            yield f.read()
    return blocks(), refused


def scan_process(pid, scanner, where):
    """The hits in one process, and whether it has a mapping that even root cannot read
    (memfd_secret)."""
    before = len(scanner.hits)
    blocks, refused = process_memory(pid)
    scanner.pieces(blocks, where)
    hidden = any("secretmem" in name for _, _, _, name in mappings(pid))
    odd = [n for n in refused if "secretmem" not in n]
    return scanner.hits[before:], hidden, odd


def scan_front(test, durward, role, host, scanner):
    """A broker's front has handled the sandbox's sessions and has never had a secret; that its memory is read the name of the
    server shows (control)."""
    if os.geteuid() != 0:
        test.skip("every mapping of the " + role, "reading other processes' memory needs root")
        return
    own = Scanner()
    own.needles, own.longest = dict(scanner.needles), max(scanner.longest, len(host))
    own.needles[host.encode()] = ("host", "raw")
    hits = [h for pid, r in durward.roles() if r == role for h in scan_process(pid, own, "%s %d" % (role, pid))[0]]
    leaked = [h for h in hits if h[0] != "host"]
    test.tally(canaries=len(leaked), searched=own.bytes)
    test.ok(len(hits) > len(leaked), "the memory of the %s was read (control)" % role, "%d bytes" % own.bytes)
    test.ok(not leaked, "%s: 0 copies of a secret" % role, *["%s as %s in %s" % h for h in leaked])


LOAD = ("touch /tmp/load; (while [ -e /tmp/load ]; do curl -s -o /dev/null "
        "-H \"Authorization: token $GITHUB_TOKEN\" https://api.github.com/user; done) "
        ">/dev/null 2>&1 &")


def scan_roles(test, sandbox, scanner):
    """As root, while requests run: every readable mapping of every role of this sandbox's daemon.
    No copy of a secret but in vault and injector, which have one or a secret mapping."""
    if os.geteuid() != 0:
        test.skip("every mapping of every role", "reading other processes' memory needs root")
        return
    sandbox.sh(LOAD)
    found, clean, held, size = sandbox.durward.roles(sandbox.process.pid), [], [], 0
    for pid, role in found:
        own = Scanner()
        own.needles, own.longest = scanner.needles, scanner.longest
        try:
            hits, hidden, _ = scan_process(pid, own, "%s %d" % (role, pid))
        except (FileNotFoundError, ProcessLookupError):
            continue
        size += own.bytes
        if role in ("vault", "injector"):
            held += [role] if hits or hidden else []
        else:
            clean += hits
    sandbox.sh("rm -f /tmp/load; sleep 0.3")
    test.diag("role scan: %d processes, %d bytes" % (len(found), size))
    test.tally(canaries=len(clean), searched=size)
    test.ok(len(found) >= 8 and size > 50 << 20, "the roles' memory was read", str(found))
    test.ok(not clean, "0 copies of a secret in the roles but vault and injector",
            *["%s as %s in %s" % h for h in clean])
    test.ok("injector" in held, "the injector has one, or a secret mapping (control)", str(held))
