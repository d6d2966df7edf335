"""A program on a pseudo-terminal of ours: what is typed into it, what is seen of it."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import threading
import time

from . import tap


class Terminal:
    """A program on a pseudo-terminal of ours."""

    def __init__(self, t, argv, cwd, env, rows=24, cols=80):
        self.out = b""
        self.master, slave = pty.openpty()
        self.slave = slave
        self.size(rows, cols)
        self.before = termios.tcgetattr(slave)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                tap.die_with_parent()
                fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
                for fd in (0, 1, 2):
                    os.dup2(slave, fd)
                os.closerange(3, 256)
                os.chdir(cwd)
                os.execve(argv[0], argv, env)
            finally:
                os._exit(99)
        self.status = None
        t.cleanup(self.end)

    def size(self, rows, cols):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def see(self, text, seconds=8):
        """Wait until text came; what came before it goes. -> bool"""
        end = time.monotonic() + seconds * tap.SLOWER
        text = text.encode()
        while text not in self.out:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.master], [], [], left)[0]:
                return False
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return False
            self.out += data
        self.last, self.out = self.out, self.out[self.out.index(text) + len(text):]
        return True

    def wait(self, seconds=10):
        end = time.monotonic() + seconds * tap.SLOWER
        while self.status is None and time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif select.select([self.master], [], [], 0.05)[0]:
                try:
                    self.out += os.read(self.master, 65536)
                except OSError:
                    pass
        return self.status

    def end(self):
        if self.status is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        for fd in (self.master, self.slave):
            try:
                os.close(fd)
            except OSError:
                pass


class Answerer(threading.Thread):
    """Somebody at a terminal of `durward run --ask` who says no to all that is held, after a moment."""

    def __init__(self, t, answer="\n", moment=0.2):
        super().__init__(daemon=True)
        self.master, self.slave = pty.openpty()
        self.answer, self.moment, self.asked, self.ended = answer, moment, 0, threading.Event()
        self.thought = 0.0  # seconds, of all answers
        t.cleanup(self.end)
        self.start()

    def run(self):
        seen = b""
        while not self.ended.is_set():
            if not select.select([self.master], [], [], 0.1)[0]:
                continue
            try:
                seen += os.read(self.master, 65536)
            except OSError:
                return
            if b"[y/s/r/N]" in seen:
                seen = b""
                self.asked += 1
                began = time.monotonic()
                self.ended.wait(self.moment)
                self.thought += time.monotonic() - began
                os.write(self.master, self.answer.encode())

    def end(self):
        self.ended.set()
        self.join()
        os.close(self.master)
        os.close(self.slave)
