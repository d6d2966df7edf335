"""Where the daemon's API is, and who asks: a unix socket's path, or https://HOST[:PORT] with a token."""
from __future__ import annotations

import http.client
import os
import socket
import ssl
import stat
from urllib.parse import urlsplit

CONNECT_SECONDS = 10


class Where(str):
    """A path or URL as text; the token is not part of it."""

    token: str = ""
    ca: str = ""

    @property
    def remote(self) -> bool:
        return self.startswith("https://")

    @property
    def headers(self) -> dict[str, str]:
        """Of each request."""
        if not self.remote:
            return {"Host": "durward"}
        return {"Host": urlsplit(self).netloc, "Authorization": "Bearer " + self.token}

    @property
    def endpoint(self) -> tuple[str, int]:
        parts = urlsplit(self)
        return parts.hostname or "", parts.port or 443

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca or None)


def default_socket() -> str:
    """$DURWARD_URL, $DURWARD_SOCKET, else where the daemon of this user puts it."""
    told = os.environ.get("DURWARD_URL") or os.environ.get("DURWARD_SOCKET")
    if told:
        return told
    if os.geteuid() == 0:
        return "/run/durward/api.sock"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        return os.path.join(runtime, "durward", "api.sock")
    return "/tmp/durward-%d/api.sock" % os.geteuid()


def _token() -> str:
    said, path = os.environ.get("DURWARD_TOKEN"), os.environ.get("DURWARD_TOKEN_FILE")
    if said:
        return said
    if not path:
        raise ValueError("a daemon elsewhere wants a token: give token=, or set DURWARD_TOKEN_FILE or "
                         "DURWARD_TOKEN (`durward token create` makes one)")
    with open(path, encoding="ascii") as f:
        if os.fstat(f.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ValueError("%s can be read by others; chmod 600 it" % path)
        return f.readline().strip()


def _remote(url: str, token: str | None, ca: str | os.PathLike[str] | None) -> Where:
    parts = urlsplit(url)
    if not parts.hostname or parts.path not in ("", "/") or parts.query or parts.username:
        raise ValueError("%s is not https://HOST[:PORT]" % url)
    where = Where(url.rstrip("/"))
    where.token = token if token is not None else _token()
    where.ca = os.fspath(ca) if ca is not None else os.environ.get("DURWARD_CA", "")
    try:
        where.tls()
    except OSError as e:
        raise ValueError("the daemon's CA cannot be read from %s: %s" % (where.ca, e.strerror)) from e
    if not where.token or any(not (c.isascii() and (c.isalnum() or c in "-._~")) for c in where.token):
        raise ValueError("that is no token")
    return where


def socket_path(given: str | os.PathLike[str] | None, token: str | None = None,
                ca: str | os.PathLike[str] | None = None) -> Where:
    """An absolute path, or a URL with its token; ValueError for what is none."""
    if isinstance(given, Where):
        return given
    path = os.fspath(given) if given is not None else default_socket()
    if path.startswith("https://"):
        return _remote(path, token, ca)
    if "://" in path:
        raise ValueError(
            "%s: the daemon's API is spoken over a unix socket or https only, never in clear. Say the socket's path, or "
            "https://HOST[:PORT] where the daemon's configuration has controller.https (then a token is needed, too: "
            "`durward token create`)" % path)
    if not os.path.isabs(path):
        raise ValueError("the daemon's socket must be an absolute path: %r" % path)
    return Where(path)


class Connection(http.client.HTTPConnection):
    """One request's. wait: seconds, None for ever."""

    def __init__(self, where: Where, wait: float | None) -> None:
        super().__init__("durward")
        self._where, self._wait = where, wait

    def connect(self) -> None:
        s: socket.socket
        if self._where.remote:
            s = socket.create_connection(self._where.endpoint, CONNECT_SECONDS)
        else:
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            s.settimeout(CONNECT_SECONDS)
            if self._where.remote:
                s = self._where.tls().wrap_socket(s, server_hostname=self._where.endpoint[0])
            else:
                s.connect(self._where)
            s.settimeout(self._wait)
        except BaseException:
            s.close()
            raise
        self.sock = s
