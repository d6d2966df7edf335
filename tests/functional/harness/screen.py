"""A program on a terminal of tmux, as a person has it: what is typed into it, and what the screen shows."""
import os
import re
import shutil
import subprocess
import tempfile
import time

CONF = "set -g status off\nset -g remain-on-exit on\nset -g escape-time 0\n"
TOLD = 'trap : HUP INT QUIT; "$@"; echo $? >"$0"'  # tmux 3.3a says of some programs that they ended, and not how


class Screen:
    def __init__(self, t, argv, cwd, env, cols=120, rows=40):
        self.folder = tempfile.mkdtemp(prefix="durward-test-")
        self.socket = os.path.join(self.folder, "s")
        self.ended = os.path.join(self.folder, "ended")
        t.cleanup(self.close)
        conf = os.path.join(self.folder, "conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(CONF)
        subprocess.run(["tmux", "-S", self.socket, "-f", conf, "new-session", "-d", "-x", str(cols), "-y", str(rows), "-c", cwd,
                        "--", "sh", "-c", TOLD, self.ended] + list(argv), env=dict(env, TERM="xterm-256color", LANG="C.UTF-8"),
                       check=True, timeout=20)

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

    def choose(self, text):
        """One step towards what a list of choices has: down to it, then Enter, by where its mark stands, for a key that comes
        while a program draws is lost. False: it is not shown."""
        lines = [x for x in self._tmux("capture-pane", "-p").splitlines() if text in x]
        if lines:
            self.key("Enter" if any(re.match(r"\W*[\u276f\u203a>]\s", x) for x in lines) else "Down")
        return bool(lines)

    def status(self):
        """Its exit status, or 128 and the signal's number; None: it runs."""
        try:
            with open(self.ended, encoding="ascii") as f:
                said = f.read()
        except FileNotFoundError:
            return None
        return int(said) if said.endswith("\n") else None

    def wait(self, done, seconds):
        """Until done() -> bool"""
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                return False
            time.sleep(0.2)
        return True

    def close(self):
        """As when its window is closed: SIGHUP, which the kernel sends to the first of a session alone, is passed on to the
        program. It is waited for."""
        pid = self._tmux("display-message", "-p", "#{pane_pid}").strip()
        self._tmux("kill-server")
        if pid:
            subprocess.run(["pkill", "-HUP", "-P", pid], timeout=20, check=False)
        self.wait(lambda: not pid or not os.path.exists("/proc/" + pid), 30)
        shutil.rmtree(self.folder, ignore_errors=True)
