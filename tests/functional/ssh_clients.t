#!/usr/bin/python3 -B
"""SSH clients of others at one task each, bare and then inside a sandbox, both at the same server: what works bare works inside,
with no key there, and what no rule allows is refused. The servers are OpenSSH's, gitolite's and Gitea's.

--write puts the table into doc/clients.md. DURWARD_CLIENTS/ssh is what tests/functional/clients/ssh/setup makes."""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, gitea, gitolite, sshd, tap  # noqa: E402

HOST = "build.example.com"
PAGE = os.path.join(durward.TOP, "doc", "clients.md")
BEGIN, END = "<!-- ssh_clients.t -->\n", "<!-- end of ssh_clients.t -->\n"
IDENTITY = {"GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.com", "GIT_COMMITTER_NAME": "T",
            "GIT_COMMITTER_EMAIL": "t@example.com", "GIT_TERMINAL_PROMPT": "0"}
COMMANDS = ["echo hello world", "exit *", "wc -c", "head -c * /dev/zero", "bash", "sleep *"]
HOME = "set -e; export HOME=$(mktemp -d); cd $HOME; mkdir -m 700 .ssh; cp $SSH_KNOWN .ssh/known_hosts; "
OPTIONS = "o=\"-o UserKnownHostsFile=$SSH_KNOWN -o StrictHostKeyChecking=yes ${SSH_KEY:+-i $SSH_KEY} -o IdentitiesOnly=yes\"; "

OLD_SCP = HOME + OPTIONS + """s="scp -q -O -P $SSH_PORT $o"; at=$SSH_USER@$SSH_HOST
$s -p $at:$SSH_READ/one.txt one; cmp one $SSH_COPY/one.txt; [ $(stat -c %Y one) = $(stat -c %Y $SSH_COPY/one.txt) ]
$s -r $at:$SSH_READ/deep . ; diff -r deep $SSH_COPY/deep
mkdir stars; $s "$at:$SSH_READ/*.txt" stars; [ "$(ls stars | wc -l)" = 2 ]
head -c 3000000 /dev/urandom > big; : > empty; chmod 640 big; touch -d '2020-02-02 02:02:02' big
$s -p big empty $at:$SSH_UP; $s $at:$SSH_UP/big back; cmp big back; $s $at:$SSH_UP/empty back; cmp empty back
$s -p $at:$SSH_UP/big back; [ "$(stat -c '%a %Y' back)" = "640 $(stat -c %Y big)" ]
$s -r -p deep $at:$SSH_UP/new; $s -r deep $at:$SSH_UP; $s -r $at:$SSH_UP/new again; diff -r deep again; $s -r $at:$SSH_UP/deep more; diff -r deep more
$s -T "$at:'$SSH_UP/big'" quoted; cmp big quoted
! $s $at:$SSH_READ/none none 2>err; grep -q 'No such file' err
! $s $at:$SSH_READ/deep none 2>err; grep -q 'not a regular file' err
if [ $SSH_REFUSED = 1 ]; then
! $s $at:$SSH_CLOSED/secret none 2>err; grep -q durward err; [ ! -e none ]
! $s one $at:$SSH_READ/mine 2>err; grep -q durward err
! $s one $at:$SSH_CLOSED/mine 2>err; grep -q durward err
! $s "$at:$SSH_UP/\\$(id)" none 2>err; grep -q 'durward: denied' err
! $s $at:$SSH_READ/../closed/secret none 2>err; grep -q durward err
fi; echo ok"""

CURL = HOME + """printf 'hello\\n' > f; a="-sS ${SSH_KEY:+--key $SSH_KEY} -u $SSH_USER:"; at=$SSH_HOST:$SSH_PORT
curl $a sftp://$at$SSH_READ/one.txt | cmp - $SSH_COPY/one.txt; curl $a scp://$at$SSH_READ/one.txt | cmp - $SSH_COPY/one.txt
curl $a -T f sftp://$at$SSH_UP/curl; curl $a sftp://$at$SSH_UP/curl | cmp - f; curl $a sftp://$at$SSH_READ/ | grep -q one.txt
curl $a -T f scp://$at$SSH_UP/curl2; curl $a scp://$at$SSH_UP/curl2 | cmp - f
if [ $SSH_REFUSED = 1 ]; then ! curl $a sftp://$at$SSH_CLOSED/secret; ! curl $a scp://$at$SSH_CLOSED/secret; fi; echo ok"""

# What it does first at a host: a script over the standard input of a shell, and what it says of the platform.
VSCODE = HOME + OPTIONS + """printf '%s\\n' 'echo "begin"' 'uname -s' 'umask' 'd=$(mktemp -d); cd $d' 'head -c 200000 /dev/zero > server.tar' \
'wc -c < server.tar' 'rm -r $d' 'echo "end$(printf =)"' > script; ssh -T -p $SSH_PORT $o -o ServerAliveInterval=1 $SSH_USER@$SSH_HOST bash < script > out
grep -q Linux out; grep -q 200000 out; grep -q end= out; echo ok"""

ANSIBLE = HOME + """export ANSIBLE_HOME=$HOME/a ANSIBLE_REMOTE_TMP=$SSH_UP/.ansible ANSIBLE_NOCOLOR=1 ANSIBLE_LOCALHOST_WARNING=0
[ $SSH_REFUSED = 1 ] || export ANSIBLE_SSH_ARGS=-C  # a socket's path is short
printf 'target ansible_host=%s ansible_port=%s ansible_user=%s ansible_python_interpreter=/usr/bin/python3' $SSH_HOST $SSH_PORT $SSH_USER > hosts
[ -z "$SSH_KEY" ] || printf ' ansible_ssh_private_key_file=%s' $SSH_KEY >> hosts
printf " ansible_ssh_common_args='-o UserKnownHostsFile=%s'\\n" $SSH_KNOWN >> hosts
cat > play.yml <<YML
- hosts: target
  gather_facts: false
  tasks:
    - command: echo hello world
      register: said
    - assert: {that: said.stdout == 'hello world'}
    - copy: {content: "by ansible\\n", dest: "$SSH_UP/ansible", mode: "0640"}
    - copy: {src: "$SSH_COPY/deep", dest: "$SSH_UP/tree"}
    - fetch: {src: "$SSH_UP/ansible", dest: "$HOME/back", flat: true}
    - shell: echo \\$((6 * 7)) | tee "$SSH_UP/shell"
    - file: {path: "$SSH_UP/ansible", state: absent}
YML
$CLIENTS/venv/bin/ansible-playbook -i hosts play.yml > out 2>&1 || { cat out; exit 1; }
grep -q 'by ansible' back; echo ok"""

RSYNC = HOME + OPTIONS + """rsync -a -e "ssh -p $SSH_PORT $o" $SSH_USER@$SSH_HOST:$SSH_READ/ back; diff -r back $SSH_COPY
rsync -a -e "ssh -p $SSH_PORT $o" back/ $SSH_USER@$SSH_HOST:$SSH_UP/rsync; rsync -a -n -i -c -e "ssh -p $SSH_PORT $o" back/ $SSH_USER@$SSH_HOST:$SSH_UP/rsync > out
[ ! -s out ]; echo ok"""

JAVA = HOME + "java -cp \"$CLIENTS/java/jars/*:$CLIENTS/java/classes\" %s 2>&1"
PYTHON = HOME + "$CLIENTS/venv/bin/python $INSIDE/ssh_clients.py %s 2>&1"

# name -> (what it needs, its command, whether its rule allows a shell)
ROWS = {
    "scp -O (OpenSSH)": ("scp", OLD_SCP, False),
    "scp.py (paramiko)": ("ssh/venv/bin/python", PYTHON % "scp", False),
    "paramiko with a key of its own": ("ssh/venv/bin/python", PYTHON % "paramiko", False),
    "curl, sftp and scp (libssh2)": ("curl", CURL, False),
    "pygit2 (libgit2, libssh2)": ("ssh/venv/bin/python", PYTHON % "git", False),
    "golang.org/x/crypto/ssh, pkg/sftp": ("ssh/bin/sshget", HOME + "$CLIENTS/bin/sshget 2>&1", False),
    "JSch": ("ssh/java/classes/Jsch.class", JAVA % "Jsch", False),
    "JGit (Apache MINA)": ("ssh/java/classes/Jgit.class", JAVA % "Jgit", False),
    "VS Code's first script": ("ssh", VSCODE, False),
    "ansible: command, copy, fetch": ("ssh/venv/bin/ansible-playbook", ANSIBLE, True),
    "rsync": ("rsync", RSYNC, True),
}


class Bed:
    """A server with files and repositories for one way to reach it."""

    def __init__(self, t):
        os.makedirs(t.path("ecdsa"))
        host, login = (sshd.keygen(t.path("ecdsa/" + x), "ecdsa", 256) for x in ("host", "login"))
        self.server = sshd.Sshd(t, options=["MaxStartups 400", "HostKey " + t.path("ecdsa/host"), "HostKey " + t.path("sshd/host")])
        with open(t.path("sshd/authorized"), "a") as f:
            f.write(login[1] + "\n")
        self.copy = os.path.realpath(t.mkdir("copy"))
        for name, said in (("one.txt", "one\n"), ("two.txt", "two\n"), ("deep/er/three.txt", "three\n"), ("deep/four", "four\n")):
            os.makedirs(os.path.dirname(os.path.join(self.copy, name)), exist_ok=True)
            t.write("copy/" + name, said)
        self.places = {}
        for way in ("bare", "inside"):
            top = os.path.realpath(t.mkdir("files-" + way))
            os.makedirs(top + "/up")
            os.makedirs(top + "/closed")
            t.write("files-%s/closed/secret" % way, "secret\n")
            subprocess.run(["cp", "-a", self.copy, top + "/read"], check=True)
            self.places[way] = top
        self.repos = {way: self.server.repository(way, "app") for way in self.places}
        known = "".join("[127.0.0.1]:%d %s\n" % (self.server.port, k) for k in (self.server.host_key, host[1]))
        self.known = t.write("known_hosts", known)
        t.write("login", self.server.key, 0o600)
        shutil.copy(self.server.dir + "/login.pub", t.path("login.pub"))
        self.key = t.path("login")
        self.t = t

    def env(self, way):
        top = self.places[way]
        own = {"bare": ("127.0.0.1", str(self.server.port), self.key, self.known, "0"),
               "inside": (HOST, "22", "", "/etc/ssh/ssh_known_hosts", "1")}[way]
        return dict(IDENTITY, SSH_USER=self.server.user, SSH_READ=top + "/read", SSH_UP=top + "/up", SSH_CLOSED=top + "/closed",
                    SSH_COPY=self.copy, SSH_ECDSA=self.t.path("ecdsa/login") if way == "bare" else "", SSH_REPO=self.repos[way], CLIENTS=durward.clients_dir() + "/ssh", INSIDE=durward.INSIDE,
                    **dict(zip(("SSH_HOST", "SSH_PORT", "SSH_KEY", "SSH_KNOWN", "SSH_REFUSED"), own)))

    def rules(self, shell):
        top = self.places["inside"]
        more = {"shell": True, "hidden_files": True} if shell else {"commands": COMMANDS}
        at = "ssh://%s@%s" % (self.server.user, HOST)
        common = {"with": {"ssh_key": "deploy"}, "host_keys": self.server.host_key}
        return [dict(common, allow=at, read_files=[top + "/read/**", top + "/up/**"], write_files=[top + "/up/**"],
                     remove_files=[top + "/up/**"], **more),
                dict(common, allow=at + self.repos["inside"], refs="refs/heads/agent/*")]

    def sandbox(self, name, shell):
        d = durward.Durward(self.t, name)
        d.secret("deploy_key", self.server.key)
        d.secrets["deploy"] = {"ssh_key": {"key": "deploy_key"}}
        d.resolve[HOST + ":22"] = self.server.address
        d.policy("coder", self.rules(shell))
        return durward.Sandbox(d, binds=durward.client_binds("ssh") + ["%s:%s:ro" % (self.copy, self.copy)]), d


def bare(t, line, env):
    r = subprocess.run(["bash", "-c", line], env=dict(os.environ, TMPDIR=t.mkdir("scratch"), **env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=90)
    return r.returncode, r.stdout.decode(errors="replace"), r.stderr.decode(errors="replace")


def there(needs):
    return os.path.exists(os.path.join(durward.clients_dir(), needs)) if "/" in needs else shutil.which(needs)


def clients(t, bed, shell, table, only):
    box, d = bed.sandbox("shell" if shell else "d", shell)
    for name, (needs, line, wants_shell) in ROWS.items():
        if wants_shell != shell or (only and not any(o in name for o in only)):
            continue
        if not there(needs):
            t.skip(name, "%s is not there (tests/functional/clients/setup)" % needs)
            continue
        status, out, err = bare(t, line, bed.env("bare"))
        good = t.ok(status == 0 and out.endswith("ok\n"), name + ", bare", out, err)
        status, out, err = box.sh("bash -c \"$LINE\"", env=dict(bed.env("inside"), LINE=line), timeout=90)
        inside = t.ok(status == 0 and out.endswith("ok\n"), name + ", inside", out, err)
        table.append((name, "yes" if good else "no", "yes" if inside else "no"))
    d.settle()
    codes = {(r.get("code"), r.get("method"), r.get("command") or r.get("path") or r.get("detail")) for r in d.kinds("denied")}
    print("# denied: " + json.dumps(sorted(map(str, codes))))
    box.close()


LARGE = """set -e; cd ~; git lfs install >/dev/null; git clone -q $AT:$REPO a; cd a; git lfs track '*.bin' >/dev/null
head -c 3000000 /dev/urandom > x.bin; git add .; git commit -q -m large; git push -q origin HEAD:refs/heads/agent/x
git clone -q -b agent/x $AT:$REPO ~/b; cmp x.bin ~/b/x.bin; git lfs lock x.bin >/dev/null; git lfs unlock x.bin >/dev/null; echo ok"""


def with_lfs(t):
    """git-lfs by SSH alone, its objects too, and `git archive --remote`: as fetch and push of the repository."""
    if not there("git-lfs") or not there("ssh/bin/git-lfs-transfer"):
        t.skip("git-lfs", "git-lfs is not installed, or its server is not there (tests/functional/clients/setup)")
        return
    server = sshd.Sshd(t, "lfs", options=["MaxStartups 400", "SetEnv SHLVL=2 PATH=%s/ssh/bin:/usr/bin:/bin" % durward.clients_dir()])
    repo, readable, closed = (server.repository(x + ".git") for x in ("large", "readable", "closed"))
    d = durward.Durward(t, "lfs-d")
    d.secret("deploy_key", server.key)
    d.secrets["deploy"] = {"ssh_key": {"key": "deploy_key"}}
    d.resolve[HOST + ":22"] = server.address
    common, at = {"with": {"ssh_key": "deploy"}, "host_keys": server.host_key}, "ssh://%s@%s" % (server.user, HOST)
    d.policy("coder", [dict(common, allow=at + repo[:-4], refs="refs/heads/agent/*"), dict(common, allow=at + readable[:-4], access="read-only")])
    box = durward.Sandbox(d)
    env = dict(IDENTITY, AT="%s@%s" % (server.user, HOST), REPO=repo, READ=readable, CLOSED=closed)
    status, out, err = box.sh(LARGE, env=env, timeout=90)
    t.ok(status == 0 and out.endswith("ok\n"), "git-lfs: objects both ways, and a lock", out, err)
    objects = [f for _, _, files in os.walk(repo + "/lfs/objects") for f in files]
    t.eq(len(objects), 1, "the server has the object")
    status, out, err = box.sh("git archive --remote=$AT:$READ HEAD | tar t; git archive --remote=$AT:$CLOSED HEAD; echo $?", env=env)
    t.ok("128" in out and "denied" in err, "git archive --remote of a repository, and of one that no rule has", out, err)
    status, out, err = box.sh("cd ~/a; git lfs push --all $AT:$READ; echo $?; ssh $AT \"git-lfs-transfer $CLOSED download\"; echo $?; "
                              "ssh $AT \"git-lfs-transfer '$READ' upload\"; echo $?; ssh $AT \"git-lfs-authenticate $REPO upload\"; echo $?", env=env)
    t.ok(out.split()[-3:] == ["128"] * 3 and out.split()[0] != "0" and err.count("denied") >= 3 and not os.path.exists(readable + "/lfs/objects"),
         "no upload where a rule only reads, no object of another repository, and no token", out, err)
    d.settle()
    seen = {(r.get("method"), r.get("path"), r.get("command")) for r in d.kinds("admitted")}
    t.ok({("push", repo, "git-lfs-transfer"), ("fetch", repo, "git-lfs-transfer"), ("fetch", readable, "git-upload-archive")} <= seen,
         "each is on record as what it is", str(seen))
    box.close()


def with_gitolite(t):
    """A server that decides by itself: what it allows and we do, what it refuses, and what we refuse before it hears of it."""
    why = gitolite.missing()
    if why:
        t.skip("gitolite", why)
        return
    server = gitolite.Gitolite(t, {"app": ["RW+ refs/heads/agent/ = durward", "RW refs/heads/main = durward", "R = durward"]})
    d = durward.Durward(t, "gitolite")
    d.secret("deploy_key", server.sshd.key)
    d.secrets["deploy"] = {"ssh_key": {"key": "deploy_key"}}
    d.resolve[HOST + ":22"] = server.sshd.address
    common = {"with": {"ssh_key": "deploy"}, "host_keys": server.sshd.host_key}
    at = "ssh://%s@%s" % (server.sshd.user, HOST)
    d.policy("coder", [dict(common, allow=at + "/app", refs=["refs/heads/agent/*", "refs/heads/other"]), dict(common, allow=at, commands="info")])
    box = durward.Sandbox(d)
    user = "%s@%s" % (server.sshd.user, HOST)
    status, out, err = box.sh("set -e; cd ~; git clone -q %s:app a; cd a; git commit -q --allow-empty -m two; "
                              "git push -q origin HEAD:refs/heads/agent/x; git fetch -q; git rev-parse HEAD origin/agent/x" % user, env=IDENTITY)
    t.ok(status == 0 and len(set(out.split())) == 1, "gitolite: clone, a push that both allow, fetch", out, err)
    status, out, err = box.sh("cd ~/a; git push origin HEAD:refs/heads/main", env=IDENTITY)
    t.ok(status != 0 and "durward: not allowed: refs/heads/main" in err, "a reference that gitolite allows and we do not", out, err)
    status, out, err = box.sh("cd ~/a; git push origin HEAD:refs/heads/other", env=IDENTITY)
    t.ok(status != 0 and "FATAL" in err and "DENIED" in err, "one that we allow and gitolite does not: its words", out, err)
    before = server.sshd.logins()
    status, out, err = box.sh("ssh %s help; echo $?; git clone -q %s:gitolite-admin ~/no; echo $?" % (user, user), env=IDENTITY)
    t.ok(out.split() == ["128", "128"] and "denied" in err and server.sshd.logins() == before, "a command and a repository of no rule do not reach it", out, err)
    status, out, err = box.sh("ssh %s info" % user)
    t.ok(status == 0 and re.search(r"R\s*W?\s+app", out), "its own command, by rule", out, err)
    box.close()


def with_gitea(t):
    """A forge with an SSH server of its own, in Go, and branches that it protects."""
    why = gitea.missing()
    if why:
        t.skip("gitea", why)
        return
    server = gitea.Gitea(t, "app", "other")
    mine = "/repos/%s/app" % gitea.PERSON
    server.must("POST", mine + "/branch_protections", {"rule_name": "held", "enable_push": False})
    d = durward.Durward(t, "gitea")
    d.secret("deploy_key", server.key)
    d.secrets["deploy"] = {"ssh_key": {"key": "deploy_key"}}
    d.resolve[HOST + ":22"] = server.address
    d.policy("coder", [{"with": {"ssh_key": "deploy"}, "host_keys": server.host_key, "allow": "ssh://git@%s/%s/app.git" % (HOST, gitea.PERSON),
                        "refs": ["refs/heads/agent/*", "refs/heads/held"]}])
    box = durward.Sandbox(d)
    at = "git@%s:%s" % (HOST, gitea.PERSON)
    status, out, err = box.sh("set -e; cd ~; git clone -q %s/app.git a; cd a; echo x > x; git add x; git commit -q -m two; "
                              "git push -q origin HEAD:refs/heads/agent/x; git fetch -q; git rev-parse HEAD origin/agent/x" % at, env=IDENTITY)
    t.ok(status == 0 and len(set(out.split())) == 1, "gitea: clone, a push that both allow, fetch", out, err)
    pushed = server.must("GET", mine + "/branches/agent/x")["commit"]["id"]
    t.eq(pushed, out.split()[0] if out.split() else None, "which it has")
    status, out, err = box.sh("cd ~/a; git push origin HEAD:refs/heads/main", env=IDENTITY)
    t.ok(status != 0 and "durward: not allowed: refs/heads/main" in err, "a reference that gitea allows and we do not", out, err)
    status, out, err = box.sh("cd ~/a; git push origin HEAD:refs/heads/held", env=IDENTITY)
    t.ok(status != 0 and "protected" in err, "one that we allow and gitea does not: its words", out, err)
    t.eq([server.api("GET", mine + "/branches/held")[0], server.must("GET", mine + "/branches/main")["commit"]["id"] == pushed], [404, False],
         "neither is there")
    status, out, err = box.sh("git clone -q %s/other.git ~/no; echo $?; ssh git@%s; echo $?" % (at, HOST), env=IDENTITY)
    t.ok(out.split()[:1] == ["128"] and "denied" in err, "a repository of no rule, and a shell, do not reach it", out, err)
    box.close()


def write(table):
    lines = ["| client | bare | inside |\n", "|---|---|---|\n"] + ["| %s | %s | %s |\n" % row for row in table]
    with open(PAGE) as f:
        page = f.read()
    before, _, rest = page.partition(BEGIN)
    with open(PAGE, "w") as f:
        f.write(before + BEGIN + "".join(lines) + END + rest.partition(END)[2])


def main(t):
    why = sshd.missing()
    if why:
        t.skip("everything", why)
        return
    only = [a for a in sys.argv[1:] if not a.startswith("-")]
    bed, table = Bed(t), []
    t.part(clients, t, bed, False, table, only)
    t.part(clients, t, bed, True, table, only)
    if not only:
        t.part(with_lfs, t)
        t.part(with_gitolite, t)
        t.part(with_gitea, t)
    if "--write" in sys.argv:
        write(table)


tap.run(main, timeout=420)
