"""One sandbox a conversation, or one an assistant: found by its label, made when there is none."""
from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from deepagents.backends.protocol import (
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
)

from durward import Durward, DurwardError

from .backend import DEFAULT_TIMEOUT, DurwardSandbox, HonestSandbox

THREAD, ASSISTANT = "thread_id", "assistant_id"


def _scoped(key: str, value: str, policy: str | None, socket: str | os.PathLike[str] | None,
            timeout: int, **more: Any) -> DurwardSandbox:
    if not value:
        raise ValueError("%s is empty" % key)
    return DurwardSandbox(Durward(socket).get_or_create({key: value}, policy, **more),
                          timeout=timeout)


def thread_sandbox(thread_id: str, policy: str | None = None, *,
                   socket: str | os.PathLike[str] | None = None, timeout: int = DEFAULT_TIMEOUT,
                   env: Mapping[str, str] | None = None, ttl: int | None = None,
                   idle_ttl: int | None = None) -> DurwardSandbox:
    """The sandbox of this conversation. Two that ask at once get the same one."""
    return _scoped(THREAD, thread_id, policy, socket, timeout, env=env, ttl=ttl, idle_ttl=idle_ttl)


def assistant_sandbox(assistant_id: str, policy: str | None = None, *,
                      socket: str | os.PathLike[str] | None = None, timeout: int = DEFAULT_TIMEOUT,
                      env: Mapping[str, str] | None = None, ttl: int | None = None,
                      idle_ttl: int | None = None) -> DurwardSandbox:
    """The sandbox that all conversations of an assistant share; files stay from one to the next,
    until its time to live ends."""
    return _scoped(ASSISTANT, assistant_id, policy, socket, timeout, env=env, ttl=ttl,
                   idle_ttl=idle_ttl)


class ScopedSandbox(HonestSandbox):
    """A backend for one agent that serves many conversations: each operation goes to the sandbox of
    the thread (scope="thread_id") or assistant (scope="assistant_id") that LangGraph runs now."""

    def __init__(self, policy: str | None = None, *, scope: str = THREAD,
                 socket: str | os.PathLike[str] | None = None, timeout: int = DEFAULT_TIMEOUT,
                 env: Mapping[str, str] | None = None, ttl: int | None = None,
                 idle_ttl: int | None = None) -> None:
        if scope not in (THREAD, ASSISTANT):
            raise ValueError("scope must be thread_id or assistant_id")
        self._scope = scope
        self._make: dict[str, Any] = {"policy": policy, "socket": socket, "timeout": timeout,
                                      "env": env, "ttl": ttl, "idle_ttl": idle_ttl}
        self._known: dict[str, DurwardSandbox] = {}
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        return "durward-by-" + self._scope

    def current(self) -> DurwardSandbox:
        """The sandbox of what runs now. Asked for again when it has ended since."""
        from langgraph.config import get_config
        try:
            value = get_config().get("configurable", {}).get(self._scope)
        except RuntimeError:  # not inside a graph
            value = None
        if not value:
            raise DurwardError("no %s in this run: pass config={'configurable': {'%s': ...}}"
                               % (self._scope, self._scope))
        with self._lock:
            box = self._known.get(value)
            if box is not None and not _alive(box):
                box = None
            if box is None:
                box = self._known[value] = _scoped(self._scope, str(value), **self._make)
            return box

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        try:
            return self.current().execute(command, timeout=timeout)
        except DurwardError as e:
            return ExecuteResponse(output=str(e), exit_code=1)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        try:
            return self.current().upload_files(files)
        except DurwardError as e:
            return [FileUploadResponse(path=path, error=str(e)) for path, _ in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        try:
            return self.current().download_files(paths)
        except DurwardError as e:
            return [FileDownloadResponse(path=path, error=str(e)) for path in paths]


def _alive(box: DurwardSandbox) -> bool:
    try:
        return box.sandbox.refresh().state != "stopped"
    except DurwardError:
        return False
