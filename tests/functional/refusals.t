#!/usr/bin/python3 -B
"""What an agent reads when a request is refused, held or fails: real clients × a path that no rule allows, a host that no
rule allows, an origin that cannot be reached, a request that somebody was asked about and said no to. Where a client shows
a body or a reason at all, it names Durward, the reason and the way out. A refusal adds two seconds at most to the client's
own time, and an origin's failure comes as soon as it does without Durward. ./runtests tries one of these with each client, in
turn; `make refusal-texts` all, which writes doc/refusals.md (--write), and so does whoever names clients."""
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, nginx, scan, scene, shapes, tap, terminal  # noqa: E402

DOC = os.path.join(durward.TOP, "doc", "refusals.md")
RULE, HOST, DOWN, NAME = "rule.example.com", "other.example.com", "down.example.com", "other.acme.dev"
HELD = "held.example.com"
ASK = "Ask whoever runs this sandbox"
# case -> (what it is, its column, host, with proxy variables, the sentence, the way out)
CASES = {
    "rule": ("a path that no rule allows", "denied path", RULE, False,
             "Durward denied this request: no rule of the policy allows it", ASK),
    "name": ("a host that no rule allows", "denied host", NAME, False,
             "Durward denied this request: no rule of the policy allows it", ASK),
    "host": ("a host that no rule allows, with the proxy variables", "the same by CONNECT", HOST, True,
             "Durward denied this request: no rule of the policy allows it", ASK),
    "origin": ("an origin that cannot be reached", "origin down", DOWN, False,
               "Durward could not complete this request: the origin could not be connected to",
               "tell whoever runs this sandbox"),
    "held": ("a request that somebody said no to", "approval denied", HELD, False,
             "Durward denied this request: a person has to allow it, and did not", "Ask whoever runs this sandbox before"),
}
STATUS = "it shows the status of CONNECT alone"
NO_BODY = "it shows the status alone"
NO_PAGE = "it shows an error of its own, and no page"
NO_PROXY = "it pays no heed to the variables, and this name is set apart: it does not exist"
# (client, case) -> why nothing of ours can be seen
SILENT = {
    ("curl", "host"): STATUS, ("curl -f", "host"): STATUS, ("git", "host"): STATUS,
    ("cargo", "host"): STATUS, ("gRPC (Python)", "host"): STATUS,
    ("curl -f", "rule"): NO_BODY, ("curl -f", "name"): NO_BODY, ("curl -f", "origin"): NO_BODY, ("curl -f", "held"): NO_BODY,
    ("Node fetch", "host"): NO_PROXY, ("openai (Node)", "host"): NO_PROXY, ("MCP SDK (Node)", "host"): NO_PROXY,
    ("mvn", "host"): NO_PROXY, ("browser (Chromium)", "host"): NO_PAGE,
}
# {once}: what makes it not try again; refusals go without it
COMMANDS = {
    "curl": "curl -sS https://{host}/v1/x",
    "curl -f": "curl -fsS https://{host}/v1/x",
    "wget": "wget -nv {once} -O - https://{host}/v1/x",
    "git": "rm -rf ~/clone; git clone -q https://{host}/acme/repo.git ~/clone",
    "gh": "GH_TOKEN=none GH_NO_UPDATE_NOTIFIER=1 gh api https://{host}/v1/x",
    "pip": "{folder}/venv/bin/python -m pip download -q {once} --disable-pip-version-check --no-cache-dir --no-input "
           "-d ~/pip https://{host}/acme_widget-1.0-py3-none-any.whl",
    "npm": "npm view {once} --no-update-notifier --cache ~/npm --registry https://{host}/ acme-widget",
    "cargo": "mkdir -p ~/c/src && cd ~/c && touch src/lib.rs && printf '[package]\\nname = \"c\"\\nversion = "
             "\"1.0.0\"\\n[dependencies]\\nacme = {{ version = \"1\", registry = \"acme\" }}\\n' >Cargo.toml && "
             "CARGO_HOME=~/ch {once} CARGO_REGISTRIES_ACME_INDEX=sparse+https://{host}/index/ {cargo} fetch",
    "go": "mkdir -p ~/g && cd ~/g && printf 'module g\\n' >go.mod && GOFLAGS=-mod=mod GOTOOLCHAIN=local GONOSUMDB='*' "
          "GOPATH=~/gp GOCACHE=~/gc GOPROXY=https://{host} {go} mod download acme.example/widget@v1.0.0",
    "mvn": "mkdir -p ~/m && cd ~/m && printf '<project><modelVersion>4.0.0</modelVersion><parent><groupId>acme</groupId>"
           "<artifactId>parent</artifactId><version>1</version><relativePath/></parent><artifactId>widget</artifactId></project>' "
           ">pom.xml && printf '<settings><mirrors><mirror><id>acme</id><mirrorOf>*</mirrorOf><url>https://{host}/maven</url>"
           "</mirror></mirrors></settings>' >settings.xml && mvn -B -q -U -s settings.xml -Dmaven.repo.local=$HOME/m2 {once} validate",
    "apt": "mkdir -p ~/apt/lists/partial && printf 'deb https://{host}/debian stable main\\n' >~/apt/list && "
           "apt-get -q {once} -o Dir::Etc::sourcelist=$HOME/apt/list -o Dir::Etc::sourceparts=/dev/null -o Dir::State=$HOME/apt "
           "-o Dir::State::status=/dev/null -o Dir::Cache=$HOME/apt -o APT::Sandbox::User= update",
    "docker": "DOCKER_CONFIG=~/dk {docker} manifest inspect {host}/acme/widget:1",
    "Node fetch": "node --no-warnings {inside}/refused.mjs fetch {host}",
    "openai (Node)": "node --no-warnings {inside}/refused.mjs openai {host} {folder}/node_modules {once}",
    "openai (Python)": "{folder}/venv/bin/python -B {inside}/refused.py openai {host} {once}",
    "anthropic (Python)": "{folder}/agents/bin/python -B {inside}/refused.py anthropic {host} {once}",
    "google-genai (Python)": "{folder}/agents/bin/python -B {inside}/refused.py google {host}",
    "urllib": "{python} {inside}/refused.py urllib {host}",
    "requests": "{folder}/venv/bin/python -B {inside}/refused.py requests {host}",
    "httpx": "{folder}/venv/bin/python -B {inside}/refused.py httpx {host}",
    "gRPC (Python)": "{folder}/venv/bin/python -B {inside}/refused.py grpc {host}",
    # Its own list of roots is closed to us: what is looked at is the page.
    "browser (Chromium)": "{browser} --headless --no-sandbox --disable-gpu --ignore-certificate-errors --user-data-dir=$HOME/cr "
                          "--dump-dom https://{host}/v1/x 2>/dev/null",
    "MCP SDK (Python)": "{folder}/mcp/py/bin/python -B {inside}/refused.py mcp {host}",
    "MCP SDK (Node)": "node --no-warnings {inside}/refused.mjs mcp {host} {folder}/mcp",
}
ONCE = {"wget": "-t 1", "pip": "--retries 0", "npm": "--fetch-retries=0", "cargo": "CARGO_NET_RETRY=0",
        "mvn": "-Dmaven.wagon.http.retryHandler.count=0", "apt": "-o Acquire::Retries=0", "openai (Node)": "once",
        "openai (Python)": "once", "anthropic (Python)": "once"}
LIBRARIES = {"anthropic (Python)": "agents/bin/python", "google-genai (Python)": "agents/bin/python",
             "MCP SDK (Python)": "mcp/py/bin/python", "MCP SDK (Node)": "mcp/node_modules"}
PROGRAMS = {"Node fetch": "node", "openai (Node)": "node", "MCP SDK (Node)": "node", "apt": "apt-get"}
ADDED, SLOWER = 2.0, 0.5  # seconds: of a refusal beyond the client's own and the person's; of an origin's failure
TRIES = 4  # of what took too long: others work on this machine too
TOP = """# What a refusal looks like

Each text is what a real client printed in a run of `tests/functional/refusals.t`, which also writes this page
(`--write`). The id of the request is written `1-23`. Where a client shows neither body nor reason, the page says so.

"""
ABOUT = """The seconds are the client's whole run, with what else the machine did meanwhile; those without Durward are its run
against a port where nobody listens. Measured beside that, a refusal may add %g seconds, and an origin that is down %g.
The time that the person took is not in them: a request that is held waits for as long as the person does.

""" % (ADDED, SLOWER)


def program(name):
    """A tool's own binary, not a wrapper that looks for it in a home folder, or for its settings in /etc."""
    if name == "browser":
        return next((x for x in ("/usr/lib/chromium/chromium", shutil.which("chromium")) if x and os.path.exists(x)), None)
    if name == "cargo" and shutil.which("rustup"):
        r = subprocess.run(["rustup", "which", "cargo"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                           check=False)
        return r.stdout.strip() or None
    found = shutil.which(name)
    return found and os.path.realpath(found)


def missing(client, tools, folder):
    """Why it cannot run here, or None."""
    first = client.split()[0]
    if client.startswith("browser"):
        first = "browser"
    if first in tools:
        return None if tools[first] else ("chromium" if first == "browser" else first) + " is not installed"
    if client in LIBRARIES and not os.path.exists(os.path.join(folder, LIBRARIES[client])):
        return "its library is not there: run tests/functional/clients/setup"
    needs = PROGRAMS.get(client, first)
    if needs in ("curl", "wget", "git", "gh", "npm", "mvn", "apt-get", "node") and not shutil.which(needs):
        return needs + " is not installed"
    return None


def same(text):
    """What differs from run to run, taken out."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    if "<body>" in text:  # a page, as it is read
        text = re.sub(r"<(script|style|title)\b.*?</\1>|</?(html|head|meta|body|code|!DOCTYPE)\b[^<>]*>", "", text, flags=re.S)
        text = re.sub(r"<[^<>]+>", "\n", text)
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


def line_of(client, host, folder, tools, once):
    return COMMANDS[client].format(host=host, folder=folder, inside=durward.INSIDE, python=durward.PYTHON,
                                   once=ONCE.get(client, "") if once else "", **tools)


def bare(t, client, folder, tools):
    """-> seconds of the client by itself at a port where nobody listens"""
    home = t.mkdir("bare-" + re.sub(r"\W+", "-", client))
    line = line_of(client, "127.0.0.1:%d" % nginx.free_port(), folder, tools, True)
    env = {k: v for k, v in os.environ.items() if k.lower() not in [x.lower() for x in durward.PROXY_NAMES]}
    began = time.monotonic()
    subprocess.run(["/bin/sh", "-c", line], env=dict(env, HOME=home), stdin=subprocess.DEVNULL, capture_output=True, timeout=90,
                   check=False)
    return time.monotonic() - began


def inside(box, client, case, folder, tools, outputs):
    """-> (status, what it said, seconds without those that the person took)"""
    _, _, host, proxy, *_ = CASES[case]
    began, thought = time.monotonic(), box.person.thought
    status, out, err = box.sh(line_of(client, host, folder, tools, case in ("origin", "host")), proxy=proxy, timeout=90)
    took = time.monotonic() - began - (box.person.thought - thought)
    outputs += [out, err]
    return status, out + err, took


def soon(t, client, case, box, folder, tools, outputs, took, alone):
    """Its seconds. What was slow is tried again, each time beside the client by itself: others work on this machine too."""
    more = (SLOWER if case == "origin" else ADDED) * (4 if durward.sanitized() else 1)
    added, tries = took - alone[0], 1
    while added > more and tries < TRIES:
        tries += 1
        beside = bare(t, client, folder, tools)
        again = inside(box, client, case, folder, tools, outputs)[2]
        alone.append(beside)
        if again - beside < added:
            took, added = again, again - beside
    t.ok(added <= more, "%s, %s: %s" % (client, CASES[case][0], "as soon as without us" if case == "origin" else
                                        "without delay"), "%.1f s, %.1f more than without us %s" % (took, added, alone))
    return took


def tried(client):
    """A case of a client's, each in its turn; all where clients or --write are named."""
    if sys.argv[1:]:
        return list(CASES)
    return [list(CASES)[list(COMMANDS).index(client) % len(CASES)]]


def ask(t, box, client, tools, folder, outputs):
    """-> {case: (text, seconds)}, with None: without Durward"""
    alone = [bare(t, client, folder, tools)]
    said = {}
    for case in tried(client):
        what, _, _, _, sentence, way = CASES[case]
        status, text, took = inside(box, client, case, folder, tools, outputs)
        flat = re.sub(r"\s*\n(remote: )?\s*", " ", text)
        silent = SILENT.get((client, case))
        good = "Durward" not in text if silent else way in flat and (
            sentence in flat or ("<body>" in text and all(x in flat for x in sentence.split(": "))))
        t.ok(good, "%s, %s: %s" % (client, what, "nothing to see, " + silent if silent else "why, and the way out"),
             "status %s" % status, text[-3000:])
        said[case] = (text, soon(t, client, case, box, folder, tools, outputs, took, alone))
    said[None] = ("", min(alone))
    return said


def overview(table):
    """A row a client: whether it tells why, and in how many seconds."""
    rows = ["| client | without Durward | %s |" % " | ".join(x[1] for x in CASES.values()), "|---" * (len(CASES) + 2) + "|"]
    for client, said in table.items():
        cells = ["%.1f s" % said[None][1]] + ["%s, %.1f s" % ("status alone" if (client, c) in SILENT else "why", said[c][1])
                                              if c in said else "" for c in CASES]
        rows.append("| %s | %s |" % (client, " | ".join(cells)))
    return "\n".join(rows) + "\n"


def write_doc(table):
    out = [TOP + ABOUT + overview(table)]
    for client, said in table.items():
        out.append("## %s\n" % client)
        for case, (what, *_) in CASES.items():
            silent = SILENT.get((client, case))
            out.append("%s%s%s:\n" % (what[0].upper(), what[1:], " (%s)" % silent if silent else ""))
            out.append("```text\n%s\n```\n" % "\n".join(lines_of(said[case][0])))
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
    s.rule(ask=HELD)
    held = s.add(HELD, shapes.echo)
    s.d.resolve[DOWN] = "127.0.0.1:%d" % nginx.free_port()
    tools = {x: program(x) for x in ("cargo", "go", "docker", "browser")}
    person = terminal.Answerer(t)
    homes = [os.path.dirname(os.path.dirname(x)) for x in tools.values() if x and not x.startswith("/usr/")]
    box = durward.Sandbox(s.d, flags=["--ask"], terminal=person.slave,
                          binds=durward.client_binds("venv", "agents", "node_modules", "mcp") +
                          ["%s:%s:ro" % (x, x) for x in homes])
    box.person = person
    table, outputs = {}, []
    only = [x for x in sys.argv[1:] if x in COMMANDS] or list(COMMANDS)
    for client in only:
        why = missing(client, tools, folder)
        if why:
            t.skip(client, why)
            continue
        said = t.part(ask, t, box, client, tools, folder, outputs)
        if said:
            table[client] = said
    t.eq(len(seen.requests) + len(held.requests), 0, "nothing of it reached an origin")
    t.ok(person.asked >= sum("held" in said for said in table.values()) > 0, "somebody was asked", str(person.asked))
    if not sys.argv[1:]:
        telling = [c for c, said in table.items() if any((c, case) not in SILENT for case in CASES if case in said)]
        if len(telling) >= 12 or len(table) == len(COMMANDS):
            t.ok(len(telling) >= 12, "at least twelve clients tell why", str(telling))
        else:
            t.skip("at least twelve clients tell why", "%d of %d clients are not there" % (len(COMMANDS) - len(table), len(COMMANDS)))
    for line in overview(table).splitlines():
        t.diag(line)
    scan.scan_sandbox(t, box, s.scanner)
    outputs.append(box.close()[1])
    s.clean(outputs, "the refusals")
    if "--write" in sys.argv:
        whole = [x for x in COMMANDS if table.get(x)] == list(COMMANDS)
        t.ok(whole, "every client was there")
        write_doc(table) if whole else None


tap.run(main, timeout=1200)
