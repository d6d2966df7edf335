#!/usr/bin/python3 -B
"""The examples of both SDKs as their documents have them (README.md of each, doc/integrations.md): every block of Python and
TypeScript is run against a daemon, those of TypeScript after the compiler has looked at them, with a model's API on loopback
and the frameworks' own packages. What an example leaves to its reader is in PROVIDED here and in inside/documented.py. And
examples/from-local-files.mjs: a session that begins in a file system of the process's own goes on in a sandbox."""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, namespace, nginx, openai_double, scene, tap  # noqa: E402

CLIENTS = durward.clients_dir()
PYTHON = os.path.join(CLIENTS, "frameworks", "bin", "python")
CREWAI = os.path.join(CLIENTS, "frameworks", "crewai", "bin", "python")
MODULES = [os.path.join(CLIENTS, x, "node_modules") for x in ("agents-node", "frameworks-node")]
FENCE = re.compile(r"^( *)```(python|ts)\n(.*?)^\1```$", re.M | re.S)
INDENTED = re.compile(r"(?:^|\n\n)((?: {4}.*\n(?:\n(?= {4}))?)+)")
PAGES = ("sdk/python/README.md", "sdk/typescript/README.md", "doc/integrations.md")
ELSEWHERE = "gate.example.net:3128"  # where the documents have the proxy
# Programs that would tell their vendors about themselves are told not to.
QUIET = {"OTEL_SDK_DISABLED": "true", "CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_DISABLE_VERSION_CHECK": "true",
         "CREWAI_TRACING_ENABLED": "false", "MASTRA_TELEMETRY_DISABLED": "1", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
PLAIN = r'''
import { BaseSandbox } from "deepagents";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
/** Commands in a network namespace that reaches the proxy and nothing else. */
export class Plain extends BaseSandbox {
  readonly id = "plain";
  async execute(command: string) {
    const r = spawnSync("ip", ["netns", "exec", process.env.NAMESPACE!, "env", "-i", "PATH=/usr/bin:/bin", "bash", "-c", `exec 2>&1; ${command}`],
      { encoding: "utf8", timeout: 60000 });
    return { output: r.stdout, exitCode: r.status, truncated: false };
  }
  async uploadFiles(files: Array<[string, Uint8Array]>) {
    for (const [path, data] of files) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, data);
    }
    return files.map(([path]) => ({ path, error: null }));
  }
  async downloadFiles(paths: string[]) {
    return paths.map((path) => ({ path, content: new Uint8Array(readFileSync(path)), error: null }));
  }
}
'''
# Name: what an example that uses it without making it is given: (imports, statement), by a word of the example.
PROVIDED = {
    "box": [("", ('import { Durward as Daemon } from "durward";', 'const box = await new Daemon().create({ policy: "coder" });'))],
    "backend": [("", ('import { Plain } from "./plain.js";', "const backend = new Plain();"))],
    "createDeepAgent": [("", ('import { createDeepAgent } from "deepagents";', ""))],
    "DurwardSandbox": [("", ('import { DurwardSandbox } from "durward/deepagents";', ""))],
    "model": [("createDeepAgent", ("", 'const model = "openai:gpt-5";')),
              ("", ('import { openai } from "@ai-sdk/openai";', 'const model = openai("gpt-5");'))],
    "tools": [("", ("", "const tools = {};"))], "prompt": [("", ("", 'const prompt = "Say something.";'))],
    "generateText": [("", ('import { generateText } from "ai";', ""))],
    "Workspace": [("", ('import { Workspace } from "@mastra/core/workspace";', ""))],
}


def examples(page):
    """-> [(name, kind, text)]"""
    with open(os.path.join(durward.TOP, page), encoding="utf-8") as f:
        text = f.read()
    found = [(m[2], re.sub("^" + m[1], "", m[3], flags=re.M)) for m in FENCE.finditer(text)]
    plain = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.M | re.S)
    found += [("python", re.sub("^ {4}", "", m[1], flags=re.M)) for m in INDENTED.finditer(plain) if re.match(r" *(from|import) .*\n", m[1])]
    return [("%s, %s %d" % (page, kind, n), kind, block) for n, (kind, block) in enumerate(found, 1)]


def seen(t, r, least):
    lines = [json.loads(x[5:]) for x in r.stdout.splitlines() if x.startswith("seen ")]
    for good, name, more in lines:
        t.ok(good, name + " does what it says", *more)
    t.eq((r.returncode, len(lines)), (0, least), "all of them ran") or t.diag(r.stderr[-3000:])


def in_python(t, env, blocks, address, interpreter):
    """Those that this interpreter has the packages for; -> what ran."""
    ask = [(name, text.replace(ELSEWHERE, address), ("crewai" in text) == (interpreter == CREWAI) and ("pair(" not in text or env["NAMESPACE"] != ""))
           for name, kind, text in blocks if kind == "python"]
    r = subprocess.run([interpreter, "-B", os.path.join(durward.INSIDE, "documented.py")], input=json.dumps(ask), capture_output=True,
                       text=True, timeout=100, env=env, cwd=t.mkdir("python-" + str(interpreter == CREWAI)), preexec_fn=tap.die_with_parent)
    return r, sum(wanted for _, _, wanted in ask)


def program(text):
    """An example as a module of its own: what it imports first, then what it is given, then itself."""
    own = re.findall(r'^import [^;]*;\n', text, re.M)
    made = set(re.findall(r"\b(?:const|let|class|function) (\w+)", text)) | {
        x.split()[-1] for line in own for names in re.findall(r"\{([^}]*)\}", line) for x in names.split(",") if x.strip()}
    first, then = list(own), []
    for name, ways in PROVIDED.items():
        if re.search(r"(?<![\w.\"'/])%s\b(?!['\"])" % name, re.sub(r"//.*", "", text)) and name not in made:
            brings, statement = next(way for word, way in ways if word in text)
            first += [brings + "\n"] * bool(brings)
            then += [statement]
    rest = re.sub(r'^import [^;]*;\n', "", text, flags=re.M)
    return "".join(first) + "\n".join(then) + "\n" + rest + "\nexport {};\n"


def application(t):
    """A folder with our package, built, deepagents and the frameworks; -> it, or None."""
    if not all(os.path.isdir(os.path.join(MODULES[i], x)) for i, x in ((0, "deepagents"), (0, "@langchain/openai"), (1, "ai"))):
        t.skip("examples of TypeScript", "their packages are not there: run tests/functional/clients/setup")
        return None
    probe, sdk, app = "python/src/durward_deepagents/probe.py", t.path("sdk/typescript"), t.mkdir("app")
    os.makedirs(os.path.dirname(t.path("sdk/" + probe)))
    shutil.copy(os.path.join(durward.TOP, "sdk", probe), t.path("sdk/" + probe))
    shutil.copytree(os.path.join(durward.TOP, "sdk/typescript"), sdk, ignore=shutil.ignore_patterns("dist", "node_modules"))
    os.symlink(MODULES[0], os.path.join(sdk, "node_modules"))
    for words in (["typescript/bin/tsc", "-p", "tsconfig.json"], None):
        r = subprocess.run([node(), os.path.join(MODULES[0], words[0])] + words[1:] if words else [node(), "probe.mjs"], cwd=sdk,
                           capture_output=True, text=True, timeout=100)
        t.ok(r.returncode == 0, "the package for Node builds", r.stdout, r.stderr)
    modules = os.path.join(app, "node_modules")
    os.mkdir(modules)
    os.symlink(sdk, os.path.join(modules, "durward"))
    for folder in MODULES:
        link_all(folder, modules)
    with open(os.path.join(app, "package.json"), "w") as f:
        json.dump({"name": "app", "private": True, "type": "module"}, f)
    shutil.copy(os.path.join(durward.TOP, "sdk/typescript/examples/from-local-files.mjs"), app)
    return app


def link_all(source, to):
    """Packages that are not there yet; a scope's one by one."""
    for name in os.listdir(source):
        if name.startswith("@"):
            os.makedirs(os.path.join(to, name), exist_ok=True)
            link_all(os.path.join(source, name), os.path.join(to, name))
        elif not name.startswith(".") and not os.path.lexists(os.path.join(to, name)):
            os.symlink(os.path.join(source, name), os.path.join(to, name))


def node():
    own = os.path.join(MODULES[0], "node", "bin", "node")
    return own if os.access(own, os.X_OK) else "node"


def in_typescript(t, env, blocks, app):
    """[(name, what came of it)]"""
    wanted = [(name, text) for name, kind, text in blocks if kind == "ts" and ("await pair(" not in text or env["NAMESPACE"])]
    for i, (_, text) in enumerate(wanted):
        with open(os.path.join(app, "example%d.ts" % i), "w") as f:
            f.write(program(text))
    with open(os.path.join(app, "plain.ts"), "w") as f:
        f.write(PLAIN)
    r = subprocess.run([node(), os.path.join(MODULES[0], "typescript/bin/tsc"), "--strict", "--module", "nodenext", "--target", "es2022",
                        "--typeRoots", os.path.join(MODULES[0], "@types"), "--types", "node", "--skipLibCheck", "plain.ts"] +
                       ["example%d.ts" % i for i in range(len(wanted))], cwd=app, capture_output=True, text=True, timeout=100)
    t.ok(r.returncode == 0, "the compiler takes the examples as they are", r.stdout, *["example%d: %s" % (i, n) for i, (n, _) in enumerate(wanted)])
    run = [("example%d.js" % i, name) for i, (name, _) in enumerate(wanted)] + [("from-local-files.mjs", "examples/from-local-files.mjs")]

    def one(x):
        return x[1], subprocess.run([node(), x[0]], cwd=app, capture_output=True, text=True, timeout=60, env=env, preexec_fn=tap.die_with_parent)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, run))


def main(t):
    s = scene.Scene(t)
    try:
        ns = namespace.Namespace(t) if os.geteuid() == 0 else None
    except tap.Skip as e:
        t.diag(str(e))
        ns = None
    address = "%s:%d" % (ns.host if ns else "127.0.0.1", nginx.free_port())
    s.d.listen.append(dict({"http": address}, **({"insecure": True} if ns else {})))
    s.d.policies = {"coder": s.d.policies["coder"], "reviewer": {"rules": []}}
    s.d.serve()
    c = api.Api(s.d.socket)
    c.delete(c.first(policy="coder"))
    if ns is None:
        t.skip("examples of pair()", "no network namespace can be made here, and pair() with require_lock wants one")
    blocks = [x for page in PAGES for x in examples(page)]
    t.ok(len([x for x in blocks if x[1] == "python"]) >= 11 and len([x for x in blocks if x[1] == "ts"]) >= 6, "the documents have examples", len(blocks))
    with openai_double.Double() as model:
        env = dict(s.d.env, DURWARD_SOCKET=s.d.socket, OPENAI_API_KEY=openai_double.KEY, OPENAI_BASE_URL=model.url, PYTHONDONTWRITEBYTECODE="1",
                   PYTHONPATH=os.path.join(durward.TOP, "sdk/python/src"), NAMESPACE=ns.name if ns else "", **QUIET)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            interpreters = [x for x in (PYTHON, CREWAI) if os.access(x, os.X_OK)]
            for x in {PYTHON, CREWAI} - set(interpreters):
                t.skip("examples of Python" + " with CrewAI" * (x == CREWAI), "the packages are not there: run tests/functional/clients/setup")
            ran = [pool.submit(in_python, t, env, blocks, address, x) for x in interpreters]
            app = application(t)
            if app:
                t.part(pages, t, env)
            for name, r in in_typescript(t, env, blocks, app) if app else ():
                t.ok(r.returncode == 0, name + " does what it says", r.stdout[-1500:], r.stderr[-3000:])
                if name.startswith("examples/"):
                    moved(t, r.stdout)
            for r in ran:
                seen(t, *r.result())
        t.ok(model.keys == {"Bearer " + openai_double.KEY} and any("/workspace" in x for x in model.heard),
             "agents of the examples worked in a sandbox", model.keys, *model.heard[-2:])
    for x in c.list()["sandboxes"]:  # those that an example leaves, as it says
        c.delete(x["id"])
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


WORDED = {"ttl": "second", "idle_ttl": "second", "soft_ttl": "second", "timeout": "second", "wait": "second", "expires_in": "second",
          "size": "bytes", "max_output": "bytes", "port": "65535", "limit": " to ", "page_size": " to "}
LISTING = """
import inspect, json, durward
rows = []
for name in durward.__all__:
    thing = getattr(durward, name)
    rows.append([name, inspect.getdoc(thing) or "", []])
    for k, f in sorted(vars(thing).items()):
        if not k.startswith("_") and (inspect.isfunction(f) or isinstance(f, property)):
            f = f.fget if isinstance(f, property) else f
            rows.append([name + "." + k, f.__doc__ or "", list(inspect.signature(f).parameters)])
print(json.dumps(rows))
"""


def undocumented(path):
    """Exports and methods in a file of types that no comment stands before."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    return [b for a, b in zip(lines, lines[1:]) if not a.rstrip().endswith("*/") and
            re.match(r"export (declare )?(class|interface|function|type) |    (get )?(?!constructor)[a-z]\w*\(", b)]


def pages(t, env):
    """What the SDKs say of themselves: each export has words, times and sizes their unit; and pages are made of it."""
    r = subprocess.run(["/usr/bin/python3", "-B", "-c", LISTING], env=env, capture_output=True, text=True, timeout=60)
    rows = {name: (text, words) for name, text, words in json.loads(r.stdout)}
    own = {n: x for n, x in rows.items() if not (n.split(".")[-1] == "read" and "Sandbox" not in n)}  # from what the API answers
    t.ok(len(own) > 150 and not [n for n, (text, _) in own.items() if not text], "each export of the Python client says what it does",
         *[n for n, (text, _) in own.items() if not text])
    said = lambda n, text: text + rows.get(n.replace("Async", ""), ("",))[0] + ("" if " As " not in " " + text else rows["Sandbox.exec"][0])  # noqa: E731
    wrong = ["%s: %s" % (n, w) for n, (text, words) in own.items() for w in words if w in WORDED and
             not n.endswith((".get_or_create", ".fork", ".start", ".stream")) and WORDED[w] not in said(n, text)]
    t.ok(not wrong, "times say seconds, sizes bytes, numbers their bounds", *wrong)
    bare = [line for name in ("client", "sandbox", "errors") for line in undocumented(t.path("sdk/typescript/dist/%s.d.ts" % name))]
    t.ok(not bare, "so does each of the TypeScript client", *bare)
    if not os.path.exists(os.path.join(MODULES[0], "typedoc")):
        t.skip("the SDKs' pages", "typedoc is not there: run tests/functional/clients/setup")
        return
    r = subprocess.run([os.path.join(durward.TOP, "sdk/api-docs"), t.path("pages"), CLIENTS], env=env, capture_output=True, text=True, timeout=120)
    t.ok(r.returncode == 0, "the pages of both are made", r.stdout, r.stderr[-3000:])
    for path, word in (("python/durward.client.html", "max_output"), ("typescript/index.html", "durward"), ("typescript/classes/index.Sandbox.html", "64 MiB at most")):
        with open(os.path.join(t.path("pages"), path), encoding="utf-8") as f:
            t.has(f.read(), word, path)


def moved(t, said):
    """What from-local-files.mjs prints: where the session was, what it found there, and what it could not do before."""
    t.ok(re.search(r"before: .*notes\.md", said) and re.search(r"after: .*/workspace", said) and
         {"questions in the thread: 2", "kept: remember the door", "kept: shut"} <= set(said.splitlines()),
         "a session goes on in the sandbox, with its files and what was said", said)


tap.run(main, timeout=200)
