"""A real gitolite behind OpenSSH's server, in a home of its own."""
import os
import subprocess

from .sshd import Sshd, missing as no_sshd

SHELL = "/usr/share/gitolite3/gitolite-shell"


def missing():
    """Why there can be none here; None: there can."""
    return no_sshd() or (None if os.access(SHELL, os.X_OK) else "gitolite3 is not installed")


class Gitolite:
    """repos: name -> lines of its access rules; the key of .sshd is its user "durward"."""

    def __init__(self, test, repos):
        self.home = test.mkdir("gitolite")
        self.env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.home, "GL_BYPASS_ACCESS_CHECKS": "1", "USER": "git",
                    "LANG": "C.UTF-8", "GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.com", "GIT_COMMITTER_NAME": "T",
                    "GIT_COMMITTER_EMAIL": "t@example.com", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "init.defaultBranch",
                    "GIT_CONFIG_VALUE_0": "main"}
        self.run("gitolite", "setup", "-a", "admin")
        with open(os.path.join(self.home, ".gitolite/conf/gitolite.conf"), "a") as f:
            for name, lines in repos.items():
                f.write("repo %s\n%s\n" % (name, "\n".join("    " + x for x in lines)))
        self.run("gitolite", "compile")
        self.run("gitolite", "trigger", "POST_COMPILE")
        for name in repos:
            work, bare = os.path.join(self.home, name + ".work"), os.path.join(self.home, "repositories", name + ".git")
            self.run("git", "init", "-q", work)
            self.run("git", "-C", work, "commit", "-q", "--allow-empty", "-m", "first")
            self.run("git", "-C", work, "-c", "core.hooksPath=/dev/null", "push", "-q", "--receive-pack=git -c core.hooksPath=/dev/null receive-pack",
                     bare, "HEAD:refs/heads/main")
            self.run("git", "--git-dir", bare, "symbolic-ref", "HEAD", "refs/heads/main")
        self.sshd = Sshd(test, "gitolite-sshd", forced="env HOME=%s USER=git %s durward" % (self.home, SHELL))

    def run(self, *argv):
        subprocess.run(argv, env=self.env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
