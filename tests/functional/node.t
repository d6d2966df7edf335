#!/usr/bin/python3 -B
"""Node inside a sandbox: fetch, openai (plain and streamed), npm install from a registry that wants
a credential; each transparent and with the proxy variables."""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, index, origin, scan, scene, tap  # noqa: E402

HOST = "npm.example.com"
INSTALL = ("set -e; mkdir -p ~/{m}; cd ~/{m}; echo '{{\"name\":\"a\",\"version\":\"1.0.0\"}}' > "
           "package.json; npm install --silent --no-audit --no-fund --no-update-notifier "
           "--fetch-retries=0 --registry https://{h}/ {p}; "
           "node -e 'console.log(require(\"acme-widget\"))'")


def main(t):
    modules = os.path.join(durward.clients_dir(), "node_modules")
    if not shutil.which("node") or not shutil.which("npm"):
        raise tap.Skip("node or npm is not installed")
    if not os.path.exists(modules):
        raise tap.Skip("the client libraries are not there: run tests/functional/clients/setup")
    s = scene.Scene(t, delay=0.15)
    token = scan.canary("npm_")
    s.scanner.add("npm", token)
    s.d.secret("npm", token)
    bearer = ("Authorization", "Bearer " + token.decode())
    store = s.add(HOST, origin.needs(bearer, index.npm(HOST)))
    s.rule(allow=HOST, access="read-only", **{"with": {"bearer": "npm"}})
    box = durward.Sandbox(s.d, binds=durward.client_binds("node_modules"))
    outputs = []
    for proxy in (False, True):
        mode = "with proxy variables" if proxy else "transparent"
        status, out, err = box.sh("node %s/node_clients.mjs https://%s https://%s %s" % (
            durward.INSIDE, scene.GITHUB, scene.OPENAI, modules), proxy=proxy, timeout=40)
        outputs += [out, err]
        got = json.loads(out) if status == 0 else {}
        t.eq(got.get("fetch"), [200, "octo"], "fetch, " + mode) or t.diag(err)
        t.eq(got.get("post"), [201, "by fetch"], "fetch with its placeholder, " + mode)
        t.eq(got.get("openai"), "The door is kept.", "openai, " + mode)
        t.eq(got.get("stream"), "The door is kept.", "openai streamed, " + mode)
        t.ok(got.get("spread", 0) > 0.12, "event by event, " + mode, str(got))
        status, out, err = box.sh(INSTALL.format(m=mode.split()[0], h=HOST, p=index.NAME),
                                  proxy=proxy, timeout=50)
        outputs += [out, err]
        t.ok(status == 0 and out.strip().endswith("42"), "npm install, " + mode, out, err)
    scan.scan_sandbox(t, box, s.scanner)
    scan.scan_roles(t, box, s.scanner)
    outputs.append(box.close()[1])
    s.judge([(s.github, s.github_credential), (s.openai, s.openai_credential), (store, bearer)],
            outputs, "Node")


tap.run(main)
