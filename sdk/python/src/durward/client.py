"""The client that waits. Safe to use from several threads: each call has a connection of its own."""
from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from . import _calls
from ._address import Connection, socket_path
from ._calls import Call
from .errors import BadRequest, DurwardError, FileError, refusal, unreachable
from .models import Event, ExecOutput, ExecResult, FileEntry, FileResult, Identity, SandboxInfo

T = TypeVar("T")


class Durward:
    """A daemon: its socket's path, or https://HOST[:PORT] with a token and the file of its CA. Without:
    $DURWARD_URL (with DURWARD_TOKEN_FILE or DURWARD_TOKEN, and DURWARD_CA), $DURWARD_SOCKET, else this
    user's daemon. Nothing is opened before the first call."""

    def __init__(self, socket: str | os.PathLike[str] | None = None, *, token: str | None = None,
                 ca: str | os.PathLike[str] | None = None) -> None:
        self.socket = socket_path(socket, token, ca)

    def __repr__(self) -> str:
        return "Durward(%r)" % self.socket

    def _open(self, call: Call[Any]) -> tuple[Connection, http.client.HTTPResponse]:
        conn = Connection(self.socket, call.wait)
        try:
            conn.request(call.method, call.target, call.body, self.socket.headers)
            answer = conn.getresponse()
            if answer.status // 100 != 2:
                raise refusal(answer.status, answer.read())
            return conn, answer
        except (OSError, http.client.HTTPException) as e:
            conn.close()
            raise unreachable(self.socket, _as_os_error(e)) from e
        except BaseException:
            conn.close()
            raise

    def _do(self, call: Call[T]) -> T:
        conn, answer = self._open(call)
        try:
            body = answer.read()
        except (OSError, http.client.HTTPException) as e:
            raise unreachable(self.socket, _as_os_error(e)) from e
        finally:
            conn.close()
        return call.read(body)

    # ---- the daemon ----

    def version(self) -> str:
        """Of the daemon; Unavailable when there is none."""
        return self._do(_calls.health())

    def policies(self) -> list[str]:
        return self._do(_calls.policies())

    def events(self, after: int = 0, limit: int = 100) -> list[Event]:
        return self._do(_calls.events(after, limit))

    # ---- identities of remote sandboxes ----

    def issue_identity(self, policy: str | None = None, ttl: int | None = None) -> Identity:
        """A token for a sandbox that is not this daemon's. ttl: seconds, at most 3600."""
        return self._do(_calls.issue(policy, ttl))

    def revoke_identity(self, identity: str) -> None:
        """NotFound when it is unknown or revoked."""
        self._do(_calls.revoke(identity))

    # ---- sandboxes ----

    def create(self, policy: str | None = None, *, name: str | None = None,
               labels: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None,
               ttl: int | None = None, idle_ttl: int | None = None) -> Sandbox:
        """A sandbox that runs. policy may be left out where there is one only. ttl: seconds to its
        end whatever it does (default a day); idle_ttl: without a command (default an hour; 0 never)."""
        return Sandbox(self, self._do(_calls.create(policy, name, labels, env, ttl, idle_ttl, False)))

    def get_or_create(self, labels: Mapping[str, str], policy: str | None = None, *,
                      name: str | None = None, env: Mapping[str, str] | None = None,
                      ttl: int | None = None, idle_ttl: int | None = None) -> Sandbox:
        """The sandbox that has all these labels, else a new one; atomic."""
        return Sandbox(self, self._do(_calls.create(policy, name, labels, env, ttl, idle_ttl, True)))

    def sandboxes(self, labels: Mapping[str, str] | None = None,
                  state: str | None = None) -> Iterator[SandboxInfo]:
        """Oldest first, page by page."""
        after: str | None = None
        while True:
            rows, after = self._do(_calls.page(labels, state, after))
            yield from rows
            if after is None:
                return

    def get(self, sandbox_id: str) -> Sandbox:
        """NotFound when there is none."""
        return Sandbox(self, self._do(_calls.show(sandbox_id)))

    def delete(self, sandbox_id: str) -> None:
        """Idempotent; answers when nothing of it is left."""
        self._do(_calls.delete(sandbox_id))


class Sandbox:
    """One sandbox. With `with`, it is deleted at the end."""

    def __init__(self, client: Durward, info: SandboxInfo) -> None:
        self.client = client
        self.info = info

    @property
    def id(self) -> str:
        return self.info.id

    def __repr__(self) -> str:
        return "Sandbox(%r, policy=%r)" % (self.id, self.info.policy)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.delete()

    def refresh(self) -> SandboxInfo:
        """Asks again; .info is the answer."""
        self.info = self.client._do(_calls.show(self.id))
        return self.info

    def update(self, *, labels: Mapping[str, str] | None = None, ttl: int | None = None,
               idle_ttl: int | None = None) -> SandboxInfo:
        """Other labels (all of them anew), other times; ttl counts from now."""
        self.info = self.client._do(_calls.update(self.id, labels, ttl, idle_ttl))
        return self.info

    def delete(self) -> None:
        self.client._do(_calls.delete(self.id))

    # ---- commands ----

    def exec(self, command: str | Sequence[str], *, cwd: str | None = None,
             env: Mapping[str, str] | None = None, timeout: int | None = None,
             stdin: bytes | None = None, split: bool = False,
             max_output: int | None = None) -> ExecResult:
        """Run a command to its end: a string by /bin/sh -c, a list as it is. timeout: seconds, then
        it is killed and the exit code is 124 (default 1800; 0: none). max_output: bytes kept (default
        8 MiB); `truncated` says that there was more. split: standard error apart, in `stderr`; else all
        is in `output`. Interrupted, it kills the command."""
        wish = _calls.exec_body(command, cwd, env, timeout, stdin, split, max_output)
        try:
            return self.client._do(_calls.run(self.id, wish))
        except KeyboardInterrupt:
            with contextlib.suppress(DurwardError):
                self.client._do(_calls.kill(self.id, wish))
            raise

    def stream(self, command: str | Sequence[str], *, cwd: str | None = None,
               env: Mapping[str, str] | None = None, timeout: int | None = None,
               stdin: bytes | None = None, split: bool = False,
               max_output: int | None = None) -> Iterator[ExecOutput | ExecResult]:
        """Pieces of output as they come; the ExecResult, without output, is the last. Closing the
        iterator kills the command."""
        wish = _calls.exec_body(command, cwd, env, timeout, stdin, split, max_output)
        conn, answer = self.client._open(_calls.stream(self.id, wish))
        started = ""
        try:
            for line in answer:
                item = stream_item(line, started)
                if isinstance(item, str):
                    started = item
                    continue
                yield item
                if isinstance(item, ExecResult):
                    return
            raise ended_early()
        except (OSError, http.client.HTTPException) as e:
            raise unreachable(self.client.socket, _as_os_error(e)) from e
        finally:
            conn.close()

    # ---- files ----

    def read(self, path: str) -> bytes:
        return self.client._do(_calls.read_file(self.id, path))

    def write(self, path: str, data: bytes, mode: int | None = None) -> None:
        """64 MiB at most; parents are made. mode: of a file that is made (default 0644)."""
        self.client._do(_calls.write_file(self.id, path, data, mode))

    def remove(self, path: str, recursive: bool = False) -> None:
        self.client._do(_calls.delete_file(self.id, path, recursive))

    def list_files(self, path: str) -> list[FileEntry]:
        """At most 16384 entries."""
        return self.client._do(_calls.list_files(self.id, path))[0]

    def upload(self, files: Iterable[tuple[str, bytes]]) -> list[FileResult]:
        """One result for each file, in order; what goes wrong with one is in its result."""
        return [_one(lambda: self.write(path, data), path) for path, data in files]

    def download(self, paths: Iterable[str]) -> list[FileResult]:
        return [_one(lambda: self.read(path), path) for path in paths]

    def batch(self, operations: Iterable[Mapping[str, Any]]) -> list[FileResult]:
        """Small operations in one request, as the API's document has them."""
        return self.client._do(_calls.batch(self.id, operations))

    def read_tar(self, path: str) -> bytes:
        """A directory, by the tar in the sandbox."""
        return self.client._do(_calls.read_tar(self.id, path))

    def write_tar(self, path: str, data: bytes) -> None:
        self.client._do(_calls.write_tar(self.id, path, data))


def _one(operation: Any, path: str) -> FileResult:
    try:
        return FileResult(path, operation())
    except (FileError, BadRequest) as e:
        return FileResult(path, None, as_file_error(e))


def as_file_error(e: DurwardError) -> FileError:
    return e if isinstance(e, FileError) else FileError(str(e), e.code, e.status)


def _as_os_error(e: Exception) -> OSError:
    return e if isinstance(e, OSError) else ConnectionError("the answer was cut: %r" % e)


def stream_item(line: bytes, started: str) -> ExecOutput | ExecResult | str:
    """A line of a streamed command; the id for its first."""
    v = json.loads(line)
    if v["type"] == "started":
        return str(v["id"])
    if v["type"] == "exit":
        return ExecResult(started, v["exit_code"], b"", b"", v["truncated"], v["timed_out"],
                          v["message"], v["duration_ms"])
    return ExecOutput(v["type"], base64.b64decode(v["data"]))


def ended_early() -> DurwardError:
    return DurwardError("the daemon ended the stream before the command's end: it stopped, or the "
                        "sandbox was deleted", "stream_ended")
