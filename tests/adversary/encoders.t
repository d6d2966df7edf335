#!/usr/bin/python3 -B
"""C1: an origin that sends the credential back as encoders in use write it: those of Go, Node, PHP, Perl, Python and
Java, their templates of pages, and packages and libraries that many have, each run on the value itself. Nothing of it
is left in the reply."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SUITE = os.path.join(os.path.dirname(HERE), "functional")
sys.path.insert(0, SUITE)
from harness import durward, scan, scene, tap  # noqa: E402

PEERS = os.path.join(SUITE, "peers/encoders")
PACKAGES = ("", "containers", "agents-node", "frameworks-node", "mcp", "providers")
# Which signs a value has, as keys of APIs, tokens and passwords have them.
VALUES = {"key": "+/%s+z/%s==", "token": "sk-proj-%s_x9.%s", "password": "Pa$w0rd'%s<odd>&\"%s=`!"}
UNSURE = ("password", "Node: entities")     # HTML has two names for a backquote, and releases of it differ in which


def programs(t):
    """{language: how it is run, before the value; and what comes behind it}; why not, where it is not there."""
    clients = durward.clients_dir()
    jars = [j for n in ("gson", "guava", "jackson") for j in glob.glob(os.path.join(clients, "jars", n + "*.jar"))]
    go = os.path.join(t.mkdir("go"), "encoders")
    found = {"Go": ([go], []), "Node": (["node", PEERS + "/encoders.js"], [os.path.join(clients, p) for p in PACKAGES]),
             "PHP": (["php", PEERS + "/encoders.php"], []), "Perl": (["perl", PEERS + "/encoders.pl"], []),
             "Python": ([os.path.join(clients, "venv/bin/python"), PEERS + "/encoders.py"], []),
             "Java": (["java", "-cp", ":".join(jars), PEERS + "/Encoders.java"], [])}
    why = {n: p + " is not installed" for n, p in (("Go", "go"), ("Node", "node"), ("PHP", "php"), ("Perl", "perl"),
                                                   ("Java", "javac")) if not shutil.which(p)}
    if not jars:
        why["Java"] = "its libraries are not there: run tests/functional/clients/setup"
    if not os.path.exists(found["Python"][0][0]):
        found["Python"] = (["/usr/bin/python3", PEERS + "/encoders.py"], [])
    if "Go" not in why:
        subprocess.run(["go", "build", "-o", go, PEERS + "/main.go"], check=True, timeout=300,
                       env=dict(os.environ, GO111MODULE="off"))
    return found, why


def written(t, value):
    """[(encoder, text)] of each language that is there."""
    found, why = programs(t)
    said = []
    for language, (before, behind) in found.items():
        if language in why:
            t.skip(language, why[language])
            continue
        r = subprocess.run(before + [value] + behind, stdout=subprocess.PIPE, check=True, timeout=120)
        said += [tuple(json.loads(x)) for x in r.stdout.decode().splitlines()]
    return said


def left(value, body):
    """What of the value's own letters, eight at least, is still there."""
    return [x for x in re.findall("[A-Za-z0-9]{8,}", value) if x in body]


def main(t):
    s = scene.Scene(t)
    hosts = {}
    for name, form in VALUES.items():
        value = form % (scan.canary("", 12).decode(), scan.canary("", 12).decode())
        texts = written(t, value)
        s.d.secret(name, value)
        host = name + ".example.com"
        origin = s.add(host, lambda req, conn, x=texts: conn.reply(req, 200, x[int(req.path[1:])][1], kind="text/plain"))
        s.rule(**{"allow": host, "with": {"bearer": name}})
        hosts[host] = (name, value, texts, origin)
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    for host, (name, value, texts, origin) in hosts.items():
        t.ok(len(texts) > 10, "%s: %d encoders" % (name, len(texts)))
        for i, (encoder, text) in enumerate(texts):
            if (name, encoder) == UNSURE:
                continue
            r = gate.get(host, "/%d" % i)
            body = r.body.decode()
            good = r.status == 200 and len(body) == len(text) and "[REDACTED:" in body and not left(value, body)
            t.ok(good, "%s: %s" % (name, encoder), str(r.status), text, body)
        t.eq(origin.requests[-1].get("authorization"), "Bearer " + value, name + ": the origin had the credential")


tap.run(main)
