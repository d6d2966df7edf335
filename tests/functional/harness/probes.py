"""What programs of others that look for a way out of a container print, read: {what is asked: what was found}.

A value is a text, as SPECIFICATION.md lists it, or a set of which that is the least part."""
import os
import re

# sections of CDK's report that are read below, or name what is there and no way out (commands that an image has)
SECTIONS = {"System Info", "Services", "Commands and Capabilities", "Mounts", "Net Namespace", "Sysctl Variables",
            "DNS-Based Service Discovery", "K8s API Server", "K8s Service Account", "Cloud Provider Metadata API",
            "Kernel Exploits", "Sensitive Files", "ASLR", "Cgroups"}
# what deepce asks, by what an answer of it would be; the rest names programs and addresses that are there
DEEPCE = {"the engine's socket, and faults of its version": ("Docker Sock", "Sock is writable", "Docker sock mounted", "User in Docker group",
                                                             "CVE-2019-13139", "CVE-2019-5736", "CVE-2019-5021", "Rootless"),
          "privileged mode, sudoers, a server of shells": ("Privileged Mode", "Sudoers", "SSHD Service"),
          "passwords in files, hashes of passwords": ("Passwords in common files", "Hashes in shadow file")}
TOLD = {"Container ID", "Container Full ID", "Container Name", "Container IP", "DNS Server(s)", "Host IP", "Operating System", "Kernel",
        "Arch", "CPU", "Useful tools installed", "Container tools", "Groups", "User", "Inside Container", "Container Platform",
        "Docker Executable", "Docker version", "Docker Version", "Docker Containers", "Alpine Linux Version", "Other mounts",
        "Dangerous Capabilities", "Possible host usernames", "Any common entrypoint files", "Interesting files in root",
        "Interesting environment variables", "Home directories", "Searching for app dirs",
        "Exploit Test", "Basic Test", "Another Test", "Negative Test", "Multi line test"}  # of its legend
NOTHING = re.compile(r"No|None|Unknown.*|Version Unknown|Not Found|Not readable|No permission|")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
EXPLOITABLE = "\x1b[48;5;1m"  # its colour of such


def words(items):
    return ", ".join(sorted(items)) or "none"


def outside(paths):
    """Those that are not the host's own programs and files, as a sandbox without an image shows them, read-only."""
    return words({x for x in paths if x.split("/")[1] not in ("usr", "bin", "sbin", "lib", "lib64", "etc")})


def amicontained(text):
    spaces = dict(re.findall(r"^\t(pid|user): (true|false)$", text, re.M))
    caps = re.search(r"^Capabilities:\n((?:\t.*\n)*)", text, re.M)[1]
    return {"container runtime": re.search(r"Container Runtime: (\S+)", text)[1],
            "namespaces of its own, of pid and user": words(k for k, v in spaces.items() if v == "true"),
            "capabilities": words({x.strip(",") for x in caps.split() if x[0].islower()}),
            "seccomp": re.search(r"Seccomp: (\S+)", text)[1],
            "refused calls": set(re.search(r"Blocked Syscalls.*\n\t(.*)", text)[1].split()),
            "engine's socket": words(text.partition("Looking for Docker.sock")[2].split())}


def capabilities(text):
    """Of the lines of /proc/self/status."""
    sets = set(re.findall(r"Cap\w{3}:\t(\w+)", text))
    return words(x for x in sets if int(x, 16)) if sets else "not told"


def mounts(text):
    """Of lines of mountinfo, where one of a disk of the host's can be written."""
    rows = [x.split() for x in text.splitlines() if re.match(r"\d+:\d+ ", x)]
    return words(m[2] for m in rows if m[-2].startswith("/dev/") and not m[3].startswith("ro"))


def cdk(text):
    text = COLOUR.sub("", text)
    parts = dict(re.findall(r"\[  \S[^\]\n]* - ([^\]\n]*?)  \]\n(.*?)(?=\n\[  |\Z)", text, re.S))

    def lines(name, without=r"\Z."):
        said = [re.sub(r"^\d{4}/\d\d/\d\d [\d:]+ ", "", x).strip() for x in parts[name].splitlines()]
        return [x for x in said if x and not re.search(without, x)]
    setuid = [x.strip() for x in re.findall(r"^\t(/\S+)$", parts["System Info"], re.M)]
    files = [x.partition(" - ")[2] for x in lines("Sensitive Files")]
    groups = {x.split(":", 2)[2] for x in lines("Cgroups", "content|pid 1")}
    return {"capabilities": capabilities(text),
            "set-uid programs beside those of /usr": words(x for x in setuid if x.split("/")[1] not in ("usr", "bin", "sbin")),
            "sensitive services and variables": words(lines("Services")),
            "the host's network namespace": words(lines("Net Namespace")).replace("container net namespace isolated.", "not it"),
            "mounts of the host's disks that can be written": mounts(parts["Mounts"]),
            "metadata services": words(lines("Cloud Provider Metadata API", "failed to dial")),
            "what it calls critical, or a way out": words(re.findall(r"(?:Critical - |\[!\] )(\w+)", text)),
            "route_localnet": words(re.findall(r"route_localnet = (\d)", text)),
            "services that DNS tells of": words(lines("DNS-Based Service Discovery", "error when requesting")),
            "Kubernetes": words(re.findall(r"congrats.*|service-account is available|success,.*", text)),
            "exploits for its kernel and its programs": words(set(re.findall(r"\[(CVE-[^\]]*)\]", parts["Kernel Exploits"]))),
            "sensitive files beside the host's own": outside(files),
            "addresses at random": words(re.findall(r"ASLR is (\w+)", parts["ASLR"])),
            "names of control groups": words(groups),
            "sections that nobody judged": words(set(parts) - SECTIONS)}


def deepce(text):
    """Of the whole of it, in colour."""
    asked = {}
    for line in text.replace("\u2013", "-").splitlines():
        for part in line.split("[+]")[1:]:
            m = re.match(r" *(.*?) \.{2,} *(.*)", COLOUR.sub("", part))
            if m:
                asked.setdefault(m[1].lstrip("\u2514\u2500 "), []).append((m[2].strip(), EXPLOITABLE in part))
    text = COLOUR.sub("", text)
    variables = "".join(re.findall(r"Interesting environment variables \.+ *Yes\n((?:\S+=.*\n)*)", text))
    secret = {x.partition("=")[0] for x in variables.splitlines() if re.search("pass|secret|key", x, re.I)}
    rows = ["0:0 " + x for x in text.splitlines() if " - " in x and x.startswith("/")]
    found = {"what it calls exploitable": words(k for k, v in asked.items() if any(x[1] for x in v) and k != "Exploit Test"),
             "capabilities": capabilities(text),
             "mounts of the host's disks that can be written": mounts("\n".join(rows)),
             "variables that may be secrets": words(secret),
             "other hosts": words(x for x in text.splitlines() if x.endswith("is Up") or x.startswith("Host: ")),
             "questions that nobody judged": words(set(asked) - TOLD - {x for v in DEEPCE.values() for x in v})}
    for what, questions in DEEPCE.items():
        found[what] = words("%s: %s" % (q, a) for q in questions for a, _ in asked.get(q, ()) if not NOTHING.fullmatch(a))
    return found


def setpriv(text):
    got = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    ambient = got.get("Ambient capabilities", "[none]").strip("[]")  # gVisor does not tell, and setpriv ends there
    return {"capabilities that can be inherited": got["Inheritable capabilities"].strip("[]"),
            "ambient capabilities": "not told" if "CAP_AMBIENT_IS_SET" in ambient else ambient,
            "bounding set": got.get("Capability bounding set", "not told").strip("[]"),
            "no new privileges": got["no_new_privs"]}


def lsns(text):
    """Which of its namespaces are others than ours, who are outside."""
    found = dict(line.split() for line in text.splitlines()[1:])
    return {"namespaces of its own": words(k for k, n in found.items()
                                           if os.readlink("/proc/self/ns/" + k) != "%s:[%s]" % (k, n))}
