"""Where the daemon's API is."""
from __future__ import annotations

import os


def default_socket() -> str:
    """$DURWARD_SOCKET, else where the daemon of this user puts it."""
    told = os.environ.get("DURWARD_SOCKET")
    if told:
        return told
    if os.geteuid() == 0:
        return "/run/durward/api.sock"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        return os.path.join(runtime, "durward", "api.sock")
    return "/tmp/durward-%d/api.sock" % os.geteuid()


def socket_path(given: str | os.PathLike[str] | None) -> str:
    """An absolute path; ValueError for what is none."""
    path = os.fspath(given) if given is not None else default_socket()
    if "://" in path:
        raise ValueError("%s: this version speaks to a daemon over its unix socket only; give the "
                         "socket's path" % path)
    if not os.path.isabs(path):
        raise ValueError("the daemon's socket must be an absolute path: %r" % path)
    return path
