#!/usr/bin/python3 -B
"""What an agent reads when a request is refused or fails: real clients × a path that no rule allows, a
host that no rule allows, an origin that cannot be reached. Where a client shows a body or a reason at
all, it names Durward, the reason and the way out. The texts are doc/refusals.md: --write writes it."""
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, nginx, scan, scene, shapes, tap  # noqa: E402

DOC = os.path.join(durward.TOP, "doc", "refusals.md")
RULE, HOST, DOWN, NAME = "rule.example.com", "other.example.com", "down.example.com", "other.acme.dev"
ASK = "Ask whoever runs this sandbox"
# case -> (what it is, host, with proxy variables, the sentence, the way out)
CASES = {
    "rule": ("a path that no rule allows", RULE, False, "Durward denied this request: no rule of the policy allows it",
             ASK),
    "name": ("a host that no rule allows", NAME, False,
             "Durward denied this request: no rule of the policy allows it", ASK),
    "host": ("a host that no rule allows, with the proxy variables", HOST, True,
             "Durward denied this request: no rule of the policy allows it", ASK),
    "origin": ("an origin that cannot be reached", DOWN, False,
               "Durward could not complete this request: the origin could not be connected to",
               "tell whoever runs this sandbox"),
}
STATUS = "it shows the status of CONNECT alone"
NO_BODY = "it shows the status alone"
NO_PROXY = "it pays no heed to the variables, and this name is set apart: it does not exist"
# (client, case) -> why nothing of ours can be seen
SILENT = {
    ("curl", "host"): STATUS, ("curl -f", "host"): STATUS, ("git", "host"): STATUS,
    ("cargo", "host"): STATUS, ("gRPC (Python)", "host"): STATUS,
    ("curl -f", "rule"): NO_BODY, ("curl -f", "name"): NO_BODY, ("curl -f", "origin"): NO_BODY,
    ("Node fetch", "host"): NO_PROXY, ("openai (Node)", "host"): NO_PROXY,
}
COMMANDS = {
    "curl": "curl -sS https://{host}/v1/x",
    "curl -f": "curl -fsS https://{host}/v1/x",
    "wget": "wget -nv -t 1 -O - https://{host}/v1/x",
    "git": "rm -rf ~/clone; git clone -q https://{host}/acme/repo.git ~/clone",
    "gh": "GH_TOKEN=none GH_NO_UPDATE_NOTIFIER=1 gh api https://{host}/v1/x",
    "pip": "{folder}/venv/bin/python -m pip download -q --retries 0 --disable-pip-version-check --no-cache-dir --no-input "
           "-d ~/pip https://{host}/acme_widget-1.0-py3-none-any.whl",
    "npm": "npm view --fetch-retries=0 --no-update-notifier --cache ~/npm --registry https://{host}/ acme-widget",
    "cargo": "mkdir -p ~/c/src && cd ~/c && touch src/lib.rs && printf '[package]\\nname = \"c\"\\nversion = "
             "\"1.0.0\"\\n[dependencies]\\nacme = {{ version = \"1\", registry = \"acme\" }}\\n' >Cargo.toml && "
             "CARGO_HOME=~/ch CARGO_NET_RETRY=0 CARGO_REGISTRIES_ACME_INDEX=sparse+https://{host}/index/ {cargo} fetch",
    "go": "mkdir -p ~/g && cd ~/g && printf 'module g\\n' >go.mod && GOFLAGS=-mod=mod GOTOOLCHAIN=local GONOSUMDB='*' "
          "GOPATH=~/gp GOCACHE=~/gc GOPROXY=https://{host} {go} mod download acme.example/widget@v1.0.0",
    "Node fetch": "node --no-warnings {inside}/refused.mjs fetch {host}",
    "openai (Node)": "node --no-warnings {inside}/refused.mjs openai {host} {folder}/node_modules",
    "openai (Python)": "{folder}/venv/bin/python -B {inside}/refused.py openai {host}",
    "anthropic (Python)": "{folder}/agents/bin/python -B {inside}/refused.py anthropic {host}",
    "urllib": "{python} {inside}/refused.py urllib {host}",
    "requests": "{folder}/venv/bin/python -B {inside}/refused.py requests {host}",
    "httpx": "{folder}/venv/bin/python -B {inside}/refused.py httpx {host}",
    "gRPC (Python)": "{folder}/venv/bin/python -B {inside}/refused.py grpc {host}",
}
QUICK, SECONDS = ("curl", "curl -f", "wget", "git", "gh"), 5  # the others load their libraries first
TOP = """# What a refusal looks like

Each text is what a real client printed in a run of `tests/functional/refusals.t`, which also writes this page
(`--write`). The id of the request is written `1-23`. Where a client shows neither body nor reason, the page says so.

"""


def program(name):
    """A tool's own binary, not a wrapper that looks for it in a home folder."""
    if name == "cargo" and shutil.which("rustup"):
        r = subprocess.run(["rustup", "which", "cargo"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                           check=False)
        return r.stdout.strip() or None
    found = shutil.which(name)
    return found and os.path.realpath(found)


def missing(client, tools, folder):
    """Why it cannot run here, or None."""
    first = client.split()[0]
    if first in tools:
        return None if tools[first] else first + " is not installed"
    where = {"anthropic (Python)": folder + "/agents/bin/python"}.get(client)
    if where and not os.path.exists(where):
        return "its library is not there: run tests/functional/clients/setup (it needs Python 3.11)"
    needs = {"Node fetch": "node", "openai (Node)": "node"}.get(client, first)
    if needs in ("curl", "wget", "git", "gh", "npm", "node") and not shutil.which(needs):
        return needs + " is not installed"
    return None


def same(text):
    """What differs from run to run, taken out."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"(?<![\w:/.])/(?:[^/\s\"')]+/)+[^/\s\"')]*", "PATH", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d[:_]\d\d[:_]\d\d(\S*)", "TIME", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "0x0", text)
    text = re.sub(r"\b\d+-\d+\b(?=[)\"'\s<]|$)", "1-23", text)
    return re.sub(r"(?<=\D)(198\.1[89]|127\.0)\.\d+\.\d+(:\d+)?", "ADDRESS", text)


def lines_of(text):
    """At most 12 lines that hold something; of a traceback the last."""
    kept = [x.rstrip()[:600] for x in same(text).splitlines() if x.strip() and not re.match(r"[EWI]\d{4} ", x)]
    if any(x.startswith("Traceback") for x in kept):
        return kept[:2] + ["..."] + kept[-1:]
    return kept if len(kept) <= 12 else kept[:9] + ["..."] + kept[-2:]


def ask(t, box, client, tools, folder, outputs):
    """-> {case: text}"""
    said = {}
    for case, (what, host, proxy, sentence, way) in CASES.items():
        line = COMMANDS[client].format(host=host, folder=folder, inside=durward.INSIDE, python=durward.PYTHON, **tools)
        began = time.monotonic()
        status, out, err = box.sh(line, proxy=proxy, timeout=60)
        took = time.monotonic() - began
        outputs += [out, err]
        text = out + err
        flat = re.sub(r"\s*\n(remote: )?\s*", " ", text)
        silent = SILENT.get((client, case))
        good = "Durward" not in text if silent else sentence in flat and way in flat
        t.ok(good, "%s, %s: %s" % (client, what, "nothing to see, " + silent if silent else "why, and the way out"),
             "status %s" % status, text[-3000:])
        if client in QUICK:
            t.ok(took < SECONDS * (4 if durward.sanitized() else 1), "%s, %s: without delay" % (client, what),
                 "%.1f s" % took)
        said[case] = text
    return said


def write_doc(table):
    out = [TOP]
    for client, said in table.items():
        out.append("## %s\n" % client)
        for case, (what, *_) in CASES.items():
            silent = SILENT.get((client, case))
            out.append("%s%s%s:\n" % (what[0].upper(), what[1:], " (%s)" % silent if silent else ""))
            out.append("```text\n%s\n```\n" % "\n".join(lines_of(said[case])))
    with open(DOC, "w") as f:
        f.write("\n".join(out))


def main(t):
    folder = durward.clients_dir()
    if not os.path.exists(os.path.join(folder, "venv/bin/python")):
        raise tap.Skip("the client libraries are not there: run tests/functional/clients/setup")
    s = scene.Scene(t)
    seen = s.add(RULE, shapes.echo)
    s.rule(allow=RULE + "/nothing")
    s.rule(allow=DOWN)
    s.d.resolve[DOWN] = "127.0.0.1:%d" % nginx.free_port()
    tools = {"cargo": program("cargo"), "go": program("go")}
    homes = [os.path.dirname(os.path.dirname(x)) for x in tools.values() if x and not x.startswith("/usr/")]
    box = durward.Sandbox(s.d, binds=durward.client_binds("venv", "agents", "node_modules") +
                          ["%s:%s:ro" % (x, x) for x in homes])
    table, outputs = {}, []
    only = [x for x in sys.argv[1:] if x in COMMANDS] or list(COMMANDS)
    for client in only:
        why = missing(client, tools, folder)
        if why:
            t.skip(client, why)
            continue
        table[client] = t.part(ask, t, box, client, tools, folder, outputs)
    t.eq(len(seen.requests), 0, "nothing of it reached an origin")
    scan.scan_sandbox(t, box, s.scanner)
    outputs.append(box.close()[1])
    s.clean(outputs, "the refusals")
    if "--write" in sys.argv:
        whole = [x for x in COMMANDS if table.get(x)] == list(COMMANDS)
        t.ok(whole, "every client was there")
        write_doc(table) if whole else None


tap.run(main, timeout=400)
