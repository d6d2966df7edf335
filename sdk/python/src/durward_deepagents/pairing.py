"""Another provider's sandbox behind Durward's proxy.

What is inside gets an identity, variables and certificates, so that every client finds the proxy. It
holds a client that wants to go round it only as far as the provider's own network lock lets nothing
else out: pair() looks from inside whether it does, and says what it found."""
from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shlex
import threading
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import Any

from deepagents.backends.protocol import (
    DeleteResult,
    EditResult,
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    SandboxBackendProtocol,
    WriteResult,
)

from durward import Durward, DurwardError, Identity
from durward.trust import files, reached_at, variables

RENEW_BEFORE = 1800  # seconds that a token must still be good when a command starts
# What looks from inside; sdk/typescript ships the same file.
_PROBE = resources.files("durward_deepagents").joinpath("probe.py").read_text(encoding="utf-8")
ELSEWHERE = ("tcp:1.1.1.1:443", "tcp:8.8.8.8:53", "tcp:[2606:4700:4700::1111]:443",
             "tcp:169.254.169.254:80", "udp:8.8.8.8:53", "name:example.com")


_TARGET = re.compile(r"(?:(?:tcp|udp):(?:\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):[0-9]{1,5}|name:[^\s:]+)\Z")


def _targets(elsewhere: Iterable[str], require_lock: bool = False) -> tuple[str, ...]:
    """ValueError for what could not be tried: it would count as not reached."""
    if isinstance(elsewhere, (str, bytes)):
        raise ValueError("elsewhere is a list of targets, not the text %r" % elsewhere)
    found = tuple(elsewhere)
    for e in found:
        if not isinstance(e, str) or not _TARGET.match(e):
            raise ValueError("elsewhere: %r is none of tcp:HOST:PORT, udp:HOST:PORT, name:HOST" % (e,))
    if require_lock and not found:
        raise ValueError("require_lock needs something in elsewhere that is tried")
    return found


_NEEDED = ("id", "execute", "upload_files")


def _usable(backend: object) -> SandboxBackendProtocol:
    """Of any class: what pair() itself calls must be there."""
    lacking = [n for n in _NEEDED if not hasattr(type(backend), n) and not hasattr(backend, n)]
    if lacking or isinstance(backend, type):
        raise TypeError(
            "pair() wants a sandbox backend of deepagents, an object with id, execute(command, *, timeout) "
            "and upload_files([(path, bytes)]); %s has no %s" % (
                "the class %s itself" % backend.__name__ if isinstance(backend, type) else
                "an object of %s" % type(backend).__name__, ", ".join(lacking) or "instance"))
    return backend  # type: ignore[return-value]


class PairingError(DurwardError):
    """The sandbox is not behind the proxy."""


class BypassWarning(UserWarning):
    """The sandbox reaches something without the proxy."""


@dataclass(frozen=True)
class Verification:
    """What was seen from inside. through_gate: the proxy answered as ours does, and knows this
    identity. around: what was reached without it. detail: one line for people."""
    through_gate: bool
    around: tuple[str, ...]
    detail: str


def pair(backend: SandboxBackendProtocol, *, policy: str | None = None,
         socket: str | os.PathLike[str] | None = None, proxy_host: str | None = None,
         ttl: int = 3600, folder: str | None = None, elsewhere: Iterable[str] = ELSEWHERE,
         require_lock: bool = False, identity: Identity | None = None) -> PairedSandbox:
    """Put any sandbox behind the proxy of the daemon at `socket`.

    policy: of its identity. proxy_host: HOST or HOST:PORT at which the sandbox reaches the listener,
    if not where the configuration says. ttl: seconds of a token, renewed before commands. folder: of
    our files inside (default one below /tmp). elsewhere: what is tried without the proxy:
    tcp:HOST:PORT, udp:HOST:PORT (a DNS question), name:HOST (a lookup). require_lock: PairingError
    when one of them is reached, else a BypassWarning. identity: the first, if it was issued before.

    PairingError, and nothing left issued, when the proxy is not reached from inside."""
    tried = _targets(elsewhere, require_lock)
    paired = PairedSandbox(backend, policy=policy, socket=socket, proxy_host=proxy_host, ttl=ttl,
                           folder=folder, identity=identity)
    try:
        seen = paired.verify(tried)
        if not seen.through_gate or (require_lock and seen.around):
            raise PairingError(seen.detail, "not_paired")
    except BaseException:
        paired.close()
        raise
    if seen.around:
        warnings.warn(seen.detail, BypassWarning, stacklevel=2)
    return paired


class PairedSandbox(SandboxBackendProtocol):
    """The backend that was given, with the proxy's variables on each command. close() revokes what
    was issued; the sandbox itself stays its provider's. A token is renewed before a command when half
    of its time is over; a command that runs on when its own has ended is refused from then on."""

    def __init__(self, backend: SandboxBackendProtocol, *, policy: str | None = None,
                 socket: str | os.PathLike[str] | None = None, proxy_host: str | None = None,
                 ttl: int = 3600, folder: str | None = None, identity: Identity | None = None) -> None:
        """identity: the first one, if it was issued before (and is then this object's to revoke)."""
        self.backend = _usable(backend)
        self.folder = folder or "/tmp/durward-" + secrets.token_hex(8)
        if not self.folder.startswith("/") or any(c.isspace() for c in self.folder):
            raise ValueError("folder must be an absolute path without white space: %r" % folder)
        self._client = Durward(socket)
        self._policy, self._host, self._ttl = policy, proxy_host, ttl
        self._issued: list[Identity] = []
        self._lock = threading.Lock()
        self._closed = False
        self.verification: Verification | None = None
        self._renew(with_files=True, first=identity)

    # ---- identity ----

    @property
    def identity(self) -> Identity:
        """The present one."""
        return self._issued[-1]

    def _renew(self, with_files: bool = False, first: Identity | None = None) -> None:
        new = first or self._client.issue_identity(self._policy, self._ttl, remote=True)
        self._issued.append(new)
        try:
            env = variables(new, self.folder, self._host)
            text = "".join("export %s=%s\n" % (k, shlex.quote(v)) for k, v in sorted(env.items()))
            put = [(self.folder + "/env", text.encode())]
            if with_files:
                put += [("%s/%s" % (self.folder, n), data) for n, data in files(new).items()]
            for r in self.backend.upload_files(put):
                if r.error:
                    raise PairingError("%s cannot be written in the sandbox: %s" % (r.path, r.error),
                                       "upload")
        except BaseException:
            self._revoke(new)
            self._issued.remove(new)
            raise

    def _fresh(self) -> None:
        with self._lock:
            if self._closed:
                raise PairingError("this pairing is closed: pair again", "closed")
            ends = self.identity.expires
            if ends is not None and ends - time.time() < min(RENEW_BEFORE, self._ttl / 2):
                self._renew()

    def _revoke(self, identity: Identity) -> None:
        """Not that of a listener that is bound to the policy: it is everybody's."""
        if identity.token is None or (identity.expires or 0) < time.time():
            return
        try:
            self._client.revoke_identity(identity.id)
        except DurwardError:
            pass  # it ends by itself

    def close(self) -> None:
        """Revoke, and take our files away where the sandbox still answers. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for identity in self._issued:
                self._revoke(identity)
        try:
            self.backend.execute("rm -rf " + shlex.quote(self.folder))
        except Exception:  # any provider's own error; what is there is worth nothing now
            pass

    def __enter__(self) -> PairedSandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- commands ----

    @property
    def id(self) -> str:
        return self.backend.id

    def _with_variables(self, command: str) -> str:
        """Without our file the command does not run: it would run without the proxy."""
        return ". %s/env || exit 125\n%s" % (shlex.quote(self.folder), command)

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        try:
            self._fresh()
        except DurwardError as e:
            return ExecuteResponse(output=str(e), exit_code=1)
        whole = self._with_variables(command)
        if timeout is None:
            return self.backend.execute(whole)
        return self.backend.execute(whole, timeout=timeout)

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        try:
            await asyncio.to_thread(self._fresh)
        except DurwardError as e:
            return ExecuteResponse(output=str(e), exit_code=1)
        whole = self._with_variables(command)
        if timeout is None:
            return await self.backend.aexecute(whole)
        return await self.backend.aexecute(whole, timeout=timeout)

    # ---- what is seen from inside ----

    def verify(self, elsewhere: Iterable[str] = ELSEWHERE) -> Verification:
        """Ask the proxy for a name that nobody has, and try what should not be reached."""
        ask = "durward-%s.invalid:443" % secrets.token_hex(8)
        probe = "python3 -c %s %s %s" % (shlex.quote(_PROBE), shlex.quote(ask), " ".join(
            shlex.quote(e) for e in _targets(elsewhere)))
        r = self.execute(probe, timeout=60)
        self.verification = _judge(r, reached_at(self.identity.proxy, self._host).rpartition("@")[2])
        return self.verification

    # ---- files: the backend's own ways ----

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return self.backend.upload_files(files)

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return self.backend.download_files(paths)

    def ls(self, path: str) -> LsResult:
        return self.backend.ls(path)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return self.backend.read(file_path, offset, limit)

    def grep(self, pattern: str, path: str | None = None, glob: str | None = None, *,
             max_count: int | None = None) -> GrepResult:
        if max_count is None:
            return self.backend.grep(pattern, path, glob)
        return self.backend.grep(pattern, path, glob, max_count=max_count)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        return self.backend.glob(pattern) if path is None else self.backend.glob(pattern, path)

    def write(self, file_path: str, content: str) -> WriteResult:
        return self.backend.write(file_path, content)

    def edit(self, file_path: str, old_string: str, new_string: str,
             replace_all: bool = False) -> EditResult:
        return self.backend.edit(file_path, old_string, new_string, replace_all)

    def delete(self, file_path: str) -> DeleteResult:
        return self.backend.delete(file_path)

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return await self.backend.aupload_files(files)

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return await self.backend.adownload_files(paths)


def _judge(r: ExecuteResponse, where: str) -> Verification:
    try:
        seen: dict[str, Any] = json.loads(r.output.strip().splitlines()[-1])
        status, denied = int(seen["status"]), str(seen["denied"])
        around = tuple(str(x) for x in seen["around"])
    except (ValueError, KeyError, IndexError, TypeError):
        return Verification(False, (), "the check did not run inside (exit status %s): %s" % (
            r.exit_code, " ".join(r.output.split())[:300]))
    if status == 407:
        return Verification(False, around, "the proxy at %s does not know this identity: is it "
                            "another daemon's?" % where)
    if status != 403 or not denied:
        what = "answered %d" % status if status else str(seen.get("why") or "is not reached")
        return Verification(False, around, "the proxy at %s from inside: %s; is its listener "
                            "reachable from there (proxy_host)?" % (where, what))
    if around:
        return Verification(True, around, "traffic goes through the proxy, but the sandbox also "
                            "reaches %s without it: set the provider's network lock" %
                            ", ".join(around))
    return Verification(True, (), "traffic goes through the proxy; of what was tried nothing gets "
                        "around it")
