#!/usr/bin/python3 -B
"""Ten MCP servers of npm and PyPI, unmodified, each in a sandbox of its own: an agent's client in another sandbox
uses an allowed tool of each, is told of a refused one, and no credential is in any of their processes or files. Unless
DURWARD_MCP is `all` (or names some), a sample of them. Then MCP's inspector asks one, over each way in."""
import json
import os
import stat
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scan, scene, tap  # noqa: E402

FOLDER = os.path.join(durward.clients_dir(), "mcp")
SHIM = "/run/durward/durward-mcp"
DENIED = "Durward denied this request"
NODE = os.path.join(FOLDER, "node_modules", "@modelcontextprotocol")
PYTHON = os.path.join(FOLDER, "py", "bin", "python")


SAMPLE = ("git", "fetch", "sqlite", "github")
CHROMIUM = "/usr/lib/chromium/chromium"  # without the script of Debian's that reads /etc/chromium.d


def wanted(names):
    """What of them runs; what cannot, is said."""
    said = os.environ.get("DURWARD_MCP", "")
    return names if said == "all" else said.split() or list(SAMPLE)


def servers(data, repository, url):
    """name -> (command, an allowed tool and its arguments, what its answer holds, a tool that is refused)"""
    def node(package, scope=NODE):
        with open(os.path.join(scope, package, "package.json")) as f:
            entry = list(json.load(f)["bin"].values())[0]
        return ["node", os.path.join(scope, package, entry)]

    def py(module):
        return [PYTHON, "-B", "-m", module]
    return {
        "filesystem": (node("server-filesystem") + [data], ("read_text_file", {"path": data + "/note"}), "a note", "write_file"),
        "memory": (node("server-memory"), ("create_entities", {"entities": [
            {"name": "heron", "entityType": "bird", "observations": ["grey"]}]}), "heron", "delete_entities"),
        "everything": (node("server-everything"), ("echo", {"message": "heron"}), "heron", "get-env"),
        "thinking": (node("server-sequential-thinking"), ("sequentialthinking", {
            "thought": "heron", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}), "thoughtNumber", "none"),
        "time": (py("mcp_server_time") + ["--local-timezone", "UTC"], ("get_current_time", {"timezone": "UTC"}), "UTC", "convert_time"),
        "git": (py("mcp_server_git"), ("git_log", {"repo_path": repository}), "first words", "git_commit"),
        "fetch": (py("mcp_server_fetch") + ["--ignore-robots-txt", "--allow-private-ips"], ("fetch", {"url": url}), "heron", "none"),
        "sqlite": ([os.path.join(FOLDER, "py1", "bin", "python"), "-B", "-c", "import mcp_server_sqlite as s; s.main()",
                    "--db-path", "/workspace/birds.db"],
                   ("read_query", {"query": "SELECT 'her' || 'on' AS bird"}), "heron", "write_query"),
        "github": (node("server-github"), ("list_issues", {"owner": "acme", "repo": "x"}), "first", "create_issue"),
        "browser": (node("mcp", os.path.join(os.path.dirname(NODE), "@playwright")) + [
            "--headless", "--isolated", "--no-sandbox", "--ignore-https-errors", "--executable-path", CHROMIUM],
            ("browser_navigate", {"url": url + "page"}), "Title: heron", "browser_evaluate"),
    }


def make_repository(t):
    path = t.mkdir("repository")
    for argv in (["init", "-q"], ["config", "user.email", "a@example.com"], ["config", "user.name", "a"],
                 ["commit", "-q", "--allow-empty", "-m", "first words"]):
        subprocess.run(["git", "-C", path] + argv, check=True, env={"PATH": os.environ["PATH"], "HOME": path},
                       stdout=subprocess.DEVNULL)
    return path


def page(req, conn):
    if req.path == "/page":
        return conn.reply(req, 200, b"<title>heron</title>", kind="text/html")
    return conn.reply(req, 200, b"heron", kind="text/plain")


def session(box, name, calls):
    lines = "".join(json.dumps({"method": "tools/call", "params": {"name": n, "arguments": a}}) + "\n" for n, a in calls)
    lines = json.dumps({"method": "tools/list"}) + "\n" + lines
    status, out, err = box.sh("%s -B %s/mcp_stdio.py %s %s" % (durward.PYTHON, durward.INSIDE, SHIM, name), stdin=lines, timeout=120)
    try:
        return json.loads(out)
    except ValueError:
        return {"steps": [], "status": status, "errors": out + err}


def one(t, box, name, call, holds, refused):
    got = session(box, name, [call, (refused, {}), call])
    if len(got["steps"]) != 5:
        t.ok(False, "%s: a session" % name, json.dumps(got)[:2000], box.stderr()[-500:])
        return
    listed = [x["name"] for x in got["steps"][1].get("answer", {}).get("result", {}).get("tools", [])]
    t.eq(listed, [call[0]], "%s: the one tool that is allowed is listed" % name) or t.diag(json.dumps(got["steps"][1])[:800])
    t.ok(holds in json.dumps(got["steps"][2].get("answer", {}).get("result")), "%s: %s answers" % (name, call[0]),
         json.dumps(got["steps"][2])[:800])
    t.ok(DENIED in json.dumps(got["steps"][3]), "%s: %s is refused" % (name, refused), json.dumps(got["steps"][3])[:500])
    t.ok("result" in got["steps"][4].get("answer", {}), "%s: and the session lives on" % name)


def inspector(t, box, node, name, tool):
    """MCP's own inspector, as its command: a program that it starts, and a URL."""
    cli = os.path.join(NODE, "inspector", "cli", "build", "index.js")
    for way in ("%s %s" % (SHIM, name), "http://durward.internal/mcp/%s --transport http" % name):
        status, out, err = box.sh("%s %s %s --method tools/list" % (node, cli, way), timeout=90)
        t.ok(status == 0 and '"name": "%s"' % tool in out and out.count('"inputSchema"') == 1, "the inspector, by %s: the tool that is allowed" % (
            way.split()[0]), status, out[-1500:], err[-1500:])


def main(t):
    if not os.path.isdir(os.path.join(NODE, "server-memory")):
        t.skip("reference servers of MCP", "clients/mcp is not there: make clients")
        return
    s = scene.Scene(t)
    s.env.clear()
    data, repository = t.mkdir("data"), make_repository(t)
    with open(os.path.join(data, "note"), "w") as f:
        f.write("a note")
    s.add("page.example.com", page)
    all_servers = servers(data, repository, "https://page.example.com/")
    names = wanted(list(all_servers))
    if "browser" in names and not os.path.exists(CHROMIUM):
        t.skip("browser", "chromium is not there")
        names.remove("browser")
    all_servers = {n: all_servers[n] for n in names}
    s.rules[:] = [{"allow": "http://durward.internal/mcp/" + n, "mcp": {"tools": [call[0]]}}
                  for n, (_, call, _, _) in all_servers.items()]
    s.d.policy("server", [{"allow": "api.github.com/repos/acme/x/issues", "with": {"bearer": "github"}}, {"allow": "page.example.com"}],
               {"GITHUB_PERSONAL_ACCESS_TOKEN": "{{placeholder github}}", "MEMORY_FILE_PATH": "/workspace/memory.jsonl"})
    files = [{"path": FOLDER}, {"path": data}, {"path": repository}]
    home = os.path.dirname(os.path.dirname(os.path.realpath(subprocess.run(["which", "node"], stdout=subprocess.PIPE, text=True,
                                                                            check=True).stdout.strip())))
    if not home.startswith("/usr"):
        files.append({"path": home})
    python = os.path.dirname(os.path.dirname(os.path.realpath(PYTHON)))
    if not python.startswith("/usr"):
        files.append({"path": python})
    node = os.path.join(home, "bin", "node")
    s.d.extra["mcp_servers"] = {n: {"command": [node if c[0] == "node" else c[0]] + c[1:], "policy": "server", "files": files}
                                for n, (c, _, _, _) in all_servers.items()}
    box = durward.Sandbox(s.d, ("--policy", "coder", *[x for b in durward.client_binds("mcp") for x in ("--bind", b)]))
    for name, (_, call, holds, refused) in all_servers.items():
        t.part(one, t, box, name, call, holds, refused)
    t.part(inspector, t, box, node, names[0], all_servers[names[0]][1][0])
    scan.scan_sandbox(t, box, s.scanner)
    scan_servers(t, s)
    out = box.close()[1]
    s.clean([out], "reference servers")


def new_files(pid, birth, seen):
    """Files that this process sees and that were changed since then; each folder once, but for those of the host's programs,
    which nobody in a sandbox can write."""
    root = "/proc/%d/root" % pid
    others = {root + x for x in ("/proc", "/sys", "/dev", "/usr", "/lib", "/lib64", "/bin", "/sbin", FOLDER)}
    for top, folders, names in os.walk(root):
        here = os.stat(top)
        if (here.st_dev, here.st_ino) in seen or top in others:
            folders[:] = []
            continue
        seen.add((here.st_dev, here.st_ino))
        for path in (os.path.join(top, n) for n in names):
            try:
                one = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(one.st_mode) and one.st_ctime >= birth:
                yield path


def scan_files(t, s, pid, seen):
    found = 0
    for path in new_files(pid, s.scanner.birth, seen):
        found += 1
        try:
            s.scanner.file(path)
        except OSError as e:
            t.diag("%s: %s" % (path, e))
    return found


def scan_servers(t, s):
    """The memory of each process of a server's sandbox, its environment, and what files it sees, from outside."""
    seen, files, folders = 0, 0, set()
    before = len(s.scanner.hits)
    for pid, _ in tap.descendants(os.getpid()):
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as f:
                words = f.read().replace(b"\0", b" ")
            if not any(x.encode() in words for x in (FOLDER, CHROMIUM)) or words.startswith(b"durward: "):
                continue
            with open("/proc/%d/environ" % pid, "rb") as f:
                s.scanner.search(f.read(), "environment of %d" % pid)
        except OSError:
            continue
        try:
            scan.scan_process(pid, s.scanner, "server %d" % pid)
            if os.readlink("/proc/%d/ns/mnt" % pid) != os.readlink("/proc/self/ns/mnt"):
                files += scan_files(t, s, pid, folders)
            seen += 1
        except (OSError, ProcessLookupError):
            continue
    hits = s.scanner.hits[before:]
    t.ok(seen >= 1, "processes of servers were searched", "%d" % seen)
    t.ok(files >= 1, "and what they wrote, and what else is new in their sandboxes", "%d files in %d folders" % (files, len(folders)))
    t.ok(not hits, "0 copies of a secret in their memory and files", *["%s as %s in %s" % h for h in hits])


tap.run(main, timeout=150)
