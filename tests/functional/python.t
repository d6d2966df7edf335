#!/usr/bin/python3 -B
"""Python inside a sandbox: requests, httpx, openai (plain and streamed), pip install from an index
that wants a credential; each transparent and with the proxy variables."""
import base64
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, index, origin, scan, scene, tap  # noqa: E402

HOST = "pypi.example.com"


def pip(t, s, box, python, proxy, mode, outputs):
    target = "~/" + mode.split()[0]
    status, out, err = box.sh(
        "%s -m pip install -q --disable-pip-version-check --no-cache-dir --no-input --index-url "
        "https://%s/simple/ --target %s %s && PYTHONPATH=%s /usr/bin/python3 -c "
        "'import acme_widget; print(acme_widget.ANSWER)'" % (python, HOST, target, index.NAME,
                                                             target), proxy=proxy, timeout=50)
    outputs += [out, err]
    t.ok(status == 0 and out.strip().endswith("42"), "pip install, " + mode, out, err)


def main(t):
    s = scene.Scene(t, delay=0.15)
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    if not os.path.exists(python):
        raise tap.Skip("the client libraries are not there: run tests/functional/clients/setup")
    token = scan.canary("pypi-")
    s.scanner.add("pypi", token)
    s.d.secret("pypi", token)
    basic = ("Authorization", "Basic " + base64.b64encode(
        b"__token__:" + token).decode())
    store = s.add(HOST, origin.needs(basic, index.pypi()))
    s.rule(allow=HOST, access="read-only",
           **{"with": {"basic": {"user": "__token__", "password": "pypi"}}})
    box = durward.Sandbox(s.d, binds=durward.client_binds("venv"))
    outputs = []
    for proxy in (False, True):
        mode = "with proxy variables" if proxy else "transparent"
        status, out, err = box.sh("%s %s/py_clients.py https://%s https://%s" % (
            python, durward.INSIDE, scene.GITHUB, scene.OPENAI), proxy=proxy, timeout=50)
        outputs += [out, err]
        got = json.loads(out) if status == 0 else {}
        t.eq(got.get("requests"), [200, "octo"], "requests, " + mode) or t.diag(err)
        t.eq(got.get("session"), [200, 200, 200, 201, "by requests"],
             "requests session with its placeholder, " + mode)
        t.eq((got.get("httpx") or [None])[0], "octo", "httpx, " + mode)
        t.eq(got.get("openai"), "The door is kept.", "openai, " + mode)
        t.eq(got.get("stream"), "The door is kept.", "openai streamed, " + mode)
        t.ok(got.get("spread", 0) > 0.12, "event by event, " + mode, str(got))
        pip(t, s, box, python, proxy, mode, outputs)
    scan.scan_sandbox(t, box, s.scanner)
    scan.scan_roles(t, box, s.scanner)
    outputs.append(box.close()[1])
    s.judge([(s.github, s.github_credential), (s.openai, s.openai_credential), (store, basic)],
            outputs, "Python")


tap.run(main)
