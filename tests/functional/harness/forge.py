"""What somebody can do to an audit log who may write its directory, and knows its form well: change
lines and chain them anew, and sign them with a key of his own."""
import hashlib
import json
import os
import re
import subprocess

HEAD = re.compile(rb'^\{"seq":\d+,"prev":"[0-9a-f]{64}",')


def digest(data):
    return hashlib.sha256(data).digest()


def root(hashes):
    """The Merkle tree hash of lines' hashes, RFC 9162 2.1.1."""
    level = [digest(b"\0" + h) for h in hashes]
    while len(level) > 1:  # the last one of an odd level goes up as it is
        level = [digest(b"\1" + level[i] + level[i + 1]) if i + 1 < len(level) else level[i]
                 for i in range(0, len(level), 2)]
    return level[0]


class Key:
    def __init__(self, folder):
        self.path, self.public = os.path.join(folder, "key"), os.path.join(folder, "key.pub")
        self.text = os.path.join(folder, "text")
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.path], check=True)
        subprocess.run(["openssl", "pkey", "-in", self.path, "-pubout", "-out", self.public],
                       check=True)

    def sign(self, text):
        with open(self.text, "w") as f:
            f.write(text)
        return subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", self.path, "-in",
                               self.text], check=True, capture_output=True).stdout.hex()


def chained(lines, key=None):
    """The lines numbered and chained anew; checkpoints made anew too, when there is a key."""
    out, prev, since, first = [], b"\0" * 32, [], 1
    for seq, line in enumerate(lines, 1):
        rest = line[HEAD.match(line).end():]
        line = b'{"seq":%d,"prev":"%s",' % (seq, prev.hex().encode()) + rest
        is_checkpoint = rest.startswith(b'"kind":"checkpoint"')
        if is_checkpoint and key:
            r, when = root(since).hex(), json.loads(line)["time"]
            said = "durward audit checkpoint 1\n%d\n%d\n%s\n%s\n%s\n" % (first, seq - 1, r,
                                                                      prev.hex(), when)
            line = re.sub(rb'"first":\d+,"root":"\w+","signature":"\w+"',
                          ('"first":%d,"root":"%s","signature":"%s"' % (
                              first, r, key.sign(said))).encode(), line)
        prev = digest(line)
        if is_checkpoint:
            since, first = [], seq
        since.append(prev)
        out.append(line)
    return out


def head(name, lines, key):
    """The text of DIR/head over these lines, signed."""
    now, last = "2026-01-01T00:00:00.000000000Z", digest(lines[-1]).hex()
    said = "durward audit head 1\n%s\n%d\n%s\n%s\n" % (name, len(lines), last, now)
    return '{"file":"%s","seq":%d,"hash":"%s","time":"%s","signature":"%s"}\n' % (
        name, len(lines), last, now, key.sign(said))
