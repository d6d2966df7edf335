"""A program on a terminal of tmux, as a person has it: what is typed into it, and what the screen shows."""
import os
import re
import shutil
import subprocess
import tempfile
import time

CONF = "set -g status off\nset -g remain-on-exit on\nset -g escape-time 0\n"


class Screen:
    def __init__(self, t, argv, cwd, env, cols=120, rows=40):
        self.folder = tempfile.mkdtemp(prefix="durward-test-")
        self.socket = os.path.join(self.folder, "s")
        t.cleanup(self.close)
        conf = os.path.join(self.folder, "conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(CONF)
        subprocess.run(["tmux", "-S", self.socket, "-f", conf, "new-session", "-d", "-x", str(cols), "-y", str(rows), "-c", cwd,
                        "--"] + list(argv), env=dict(env, TERM="xterm-256color", LANG="C.UTF-8"), check=True, timeout=20)

    def _tmux(self, *words):
        r = subprocess.run(["tmux", "-S", self.socket] + list(words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           timeout=20, check=False)
        return r.stdout.decode("utf-8", "replace")

    def shown(self):
        """What stands on the screen and has left it at the top."""
        return self._tmux("capture-pane", "-p", "-S", "-200")

    def words(self):
        """The same on one line, without the frames that programs draw."""
        return " ".join(re.sub("[\u2500-\u259f\u25a0-\u25ff|>*\u2022]", " ", self.shown()).split())

    def type(self, text):
        self._tmux("send-keys", "-l", text)

    def key(self, *names):
        """Keys by tmux's names: Enter, Down, C-c ..."""
        self._tmux("send-keys", *names)

    def status(self):
        """Its exit status, or 128 and the signal's number; None: it runs, or what came of it is not known yet."""
        said = self._tmux("display-message", "-p", "#{pane_dead}/#{pane_dead_status}/#{pane_dead_signal}").strip().split("/")
        dead, code, number = said if len(said) == 3 else ("", "", "")
        if dead != "1" or not (code or number):
            return None
        return int(code) if code else 128 + int(number)

    def wait(self, done, seconds):
        """Until done() -> bool"""
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                return False
            time.sleep(0.2)
        return True

    def close(self):
        """As when its window is closed (SIGHUP); it is waited for."""
        pid = self._tmux("display-message", "-p", "#{pane_pid}").strip()
        self._tmux("kill-server")
        self.wait(lambda: not pid or not os.path.exists("/proc/" + pid), 30)
        shutil.rmtree(self.folder, ignore_errors=True)
