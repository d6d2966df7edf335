"""Clients in Python, and curl, with targets as people write them. Arguments: CLIENT VERSION BASE; stdin:
a JSON list of targets. Prints a JSON list: for each [status, what the origin was asked for]."""
import json
import subprocess
import sys
import urllib.error
import urllib.request


def target(status, body, mark):
    try:
        return [status, json.loads(body)["target"]]
    except ValueError:
        return [status, mark]


def curl(version, url):
    got = subprocess.run(["curl", "-gsS", "--path-as-is", {"h1": "--http1.1", "h2": "--http2"}[version],
                          "-w", "\n%{http_code}", url], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT).stdout.decode("utf-8", "replace")
    body, _, status = got.rpartition("\n")
    return target(int(status), body, body)


def urllib_(_, url):
    try:
        with urllib.request.urlopen(url, timeout=10) as r:
            return target(r.status, r.read(), "")
    except urllib.error.HTTPError as e:
        return [e.code, e.headers.get("Durward-Denied", "")]


def httpx(version, url, kept={}):
    import httpx as library
    if version not in kept:
        kept[version] = library.Client(http1=version == "h1", http2=version == "h2")
    r = kept[version].get(url)
    return target(r.status_code, r.content, r.headers.get("Durward-Denied", ""))


def main(client, version, base):
    ask = {"curl": curl, "urllib": urllib_, "httpx": httpx}[client]
    print(json.dumps([ask(version, base + x) for x in json.load(sys.stdin)]))


main(*sys.argv[1:])
