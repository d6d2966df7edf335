#!/usr/bin/python3 -B
"""`redact_output`: what comes out of a sandbox by the API, with what detectors find made unreadable: outputs of commands whole, as
lines, as frames and on a terminal, files, archives and batches; byte for byte as long, counted on record, the match nowhere."""
import base64
import io
import json
import os
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, tap  # noqa: E402

W = "/workspace/"
MAIL, CARD = b"jane.doe@corp.example", b"4111 1111 1111 1111"
TEXT = b"to " + MAIL + b" and " + CARD + b"; caf\xc3\xa9\n"
CLEAN = TEXT.replace(MAIL, b"*" * len(MAIL)).replace(CARD, b"**** **** **** ****")


def last(t, d, event, **want):
    """The last record of its kind."""
    return (d.wait_records(1, "lifecycle", event=event, **want) or [{}])[-1]


def key():
    """A private key, with a "+" in it, which is no letter of a URL's."""
    while True:
        pem = subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, check=True).stdout
        if b"+" in pem.split(b"\n", 3)[2]:
            return pem


def commands(t, d, c, box):
    c.write(box, W + "text", TEXT)
    t.eq(c.sh(box, "cat text"), (0, CLEAN), "a command's output, whole")
    t.eq(last(t, d, "exec_ended").get("patterns"), "card 1, email 1", "is counted on record")
    r = c.exec(box, "cat text; cat text >&2", split=True)
    t.eq((r["stdout"], r["stderr"]), (CLEAN.decode(),) * 2, "each of two outputs by itself")
    r = c.exec(box, "/usr/bin/python3 -c \"import os\nfor b in open('text','rb').read(): os.write(1, bytes([b]))\"")
    t.eq(r["output"], CLEAN.decode(), "and in pieces of a byte")
    body = json.dumps({"command": "cat text; cat text >&2", "split": True, "stream": True})
    _, _, data = c.raw("POST", "/v1/sandboxes/%s/exec" % box, body, kept=False)
    lines = [json.loads(x) for x in data.decode().splitlines()]
    for name in ("stdout", "stderr"):
        t.eq(b"".join(base64.b64decode(x["data"]) for x in lines if x["type"] == name), CLEAN, "as lines, %s" % name)
    f = c.frames(box, command="cat text; cat")
    f.receive()
    f.send(0, TEXT)
    f.send(0)
    t.eq(f.finish()[0], CLEAN * 2, "as frames, with what was sent in")
    f.close()
    pem = key()
    c.write(box, W + "key", b"a\n" + pem + b"b\n")
    want = b"a\n" + b"\n".join(b" ".join(b"*" * len(w) for w in x.split(b" ")) for x in pem.split(b"\n")) + b"b\n"
    t.eq(c.sh(box, "cat key"), (0, want), "a private key to its end")
    t.eq(c.sh(box, "echo nothing here; exit 4"), (4, b"nothing here\n"), "what holds nothing is as it was, and so is the status")
    t.eq(last(t, d, "exec_ended").get("patterns"), None, "and its record says nothing of it")
    log = json.dumps(d.records())
    t.ok(MAIL.decode() not in log and CARD.decode() not in log, "the log has no match")


def interactive(t, c, box):
    """What is not decided goes on when nothing comes for a while; what comes in that while is still judged with it."""
    f = c.frames(box, command="printf 'what is behind ghp_0a'; read a", tty=True)
    f.sock.settimeout(10)
    out = b""
    try:
        while b"ghp_0a" not in out:
            kind, data = f.receive()
            out += data if kind == 1 else b""
    except OSError:
        pass
    t.ok(b"what is behind ghp_0a" in out, "on a terminal a prompt comes, though it may be the beginning of something", out)
    f.send(0, b"\n")
    f.finish()
    f.close()
    f = c.frames(box, command="cat text; read a", tty=True)
    out = b""
    while b"\xa9" not in out:
        kind, data = f.receive()
        out += data if kind == 1 else b""
    t.ok(MAIL not in out and CARD not in out and b"****" in out, "and what is known is made unreadable there", out)
    f.send(0, b"\n")
    f.finish()
    f.close()


def files(t, d, c, box):
    t.eq(c.read(box, W + "text"), CLEAN, "a file")
    t.eq(last(t, d, "file_read", path=W + "text").get("patterns"), "card 1, email 1", "is counted on record, too")
    got = tarfile.open(fileobj=io.BytesIO(c.tar(box, W.rstrip("/"))))
    names = {m.name.lstrip("./"): m for m in got.getmembers()}
    t.eq(got.extractfile(names["text"]).read(), CLEAN, "an archive is one still, and its file is clean")
    r = c.batch(box, [{"op": "read", "path": W + "text", "encoding": "base64"}])
    t.eq(base64.b64decode(r[0].get("data", r[0].get("content", ""))), CLEAN, "in a batch: %s" % str(r)[:200])
    t.eq(c.sh(box, "cat text | md5sum")[1], c.sh(box, "md5sum < text")[1], "inside nothing has changed")
    large = os.urandom(4 << 20).hex().encode() + b" " + TEXT
    c.write(box, W + "large", large)
    t.ok(c.read(box, W + "large") == large[:-len(TEXT)] + CLEAN, "at the end of 8 MiB")


def unreadable(t, c, box):
    c.write(box, W + "wide", "to jane.doe@corp.example".encode("utf-16"))
    t.eq(api.refused(c.read, box, W + "wide"), (422, "unreadable"), "a file in UTF-16 is refused, with the reason")
    t.eq(api.refused(c.tar, box, W + "none")[0], 404, "one that is not there is not there")
    r = c.exec(box, "cat wide; sleep 30")
    t.ok(r["truncated"] and r["output"] == "" and "redact_output" in r["message"], "a command that writes such ends", str(r))
    r = c.exec(box, "head -c 200000 /dev/zero | tr '\\0' a; echo; echo end")
    t.ok(r["exit_code"] == 0 and r["output"].endswith("a\nend\n"), "a long word is no secret", str(r)[:200])


def placeholders(t, d, c, box):
    shown = c.exec(box, "printf %s \"$OPENAI_API_KEY\"")["output"]
    t.ok(len(shown) > 20 and "*" not in shown, "a placeholder is no secret", shown)


def many(t, d, c, box, other):
    """What is looked through at once has a bound, of which each sandbox has its share; what is held takes memory."""
    pid = [p for p, text in tap.descendants() if text.startswith("durward: controller")][0]

    def rss():
        with open("/proc/%d/status" % pid) as f:
            return int([x for x in f if x.startswith("VmRSS")][0].split()[1])
    before, held = rss(), []
    try:
        while len(held) < 200:
            held.append(c.frames(box, command="printf 'password = '; head -c 60000 /dev/zero | tr '\\0' ' '; echo >&2; read a", split=True))
    except api.Refused as e:
        t.eq(e.status, 503, "what is looked through at once is bounded")
    t.ok(130 < len(held) < 160, "at half of it for one sandbox", str(len(held)))
    t.eq(c.sh(other, "cat text")[1], CLEAN, "and another one has room")
    for f in held:
        kind = 0
        while kind != 2:  # it has written all
            kind, _ = f.receive()
    grown = (rss() - before) / max(1, len(held))
    t.ok(grown < 600, "each holds at most what a detector may: %d KiB" % grown)
    for f in held:
        f.close()
    t.ok(tap.wait_for(lambda: c.ask("GET", "/v1/sandboxes/%s/exec" % box)["execs"] == [], 20, 0.1), "and they end")
    t.eq(c.sh(box, "cat text")[1], CLEAN, "then there is room again")


def main(t):
    d = durward.Durward(t)
    d.secret("openai", "sk-proj-" + "Ab0" * 16, kind="openai")
    d.policy("p", [])
    d.policies["p"]["sandbox"] = {"redact_output": ["credentials", "card", "email"]}
    d.policies["p"]["env"] = {"OPENAI_API_KEY": "{{placeholder openai}}"}
    d.policy("bare", [])
    d.serve()
    c = api.Api(d.socket)
    box = c.first(policy="p")
    t.part(commands, t, d, c, box)
    for part in (interactive, unreadable):
        t.part(part, t, c, box)
    for part in (files, placeholders):
        t.part(part, t, d, c, box)
    beside = c.create(policy="p")["id"]
    c.write(beside, W + "text", TEXT)
    t.part(many, t, d, c, box, beside)
    other = c.create(policy="bare")["id"]
    c.write(other, W + "text", TEXT)
    t.eq((c.sh(other, "cat text"), c.read(other, W + "text")), ((0, TEXT), TEXT), "a policy that does not say so has it as it is")
    d.policies["p"]["sandbox"] = {"redact_output": "nobody"}
    d.save()
    r = d.command("check", "-c", d.conf)
    t.ok(r.returncode and "is not a detector" in r.stderr + r.stdout, "a word that is no detector's is a load error", r.stderr)
    c.close()


tap.run(main, timeout=120)
