"""A sandbox of Durward's as the backend of a deep agent."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from deepagents.backends.protocol import (
    DeleteResult,
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
    LsResult,
)
from deepagents.backends.sandbox import BaseSandbox

from durward import AsyncDurward, AsyncSandbox, Durward, DurwardError, ExecResult, FileResult, Sandbox

DEFAULT_TIMEOUT = 30 * 60  # seconds
_LITERALS = {"file_not_found": "file_not_found", "permission_denied": "permission_denied",
             "is_directory": "is_directory", "invalid_path": "invalid_path",
             "not_directory": "invalid_path"}


class HonestSandbox(BaseSandbox):
    """BaseSandbox's ls and delete take a sandbox that is gone for an empty directory, and for one
    without the file. Where nothing was found this asks, and says so."""

    def _why(self) -> str | None:
        r = self.execute("true", timeout=60)
        return r.output if r.exit_code else None

    async def _awhy(self) -> str | None:
        r = await self.aexecute("true", timeout=60)
        return r.output if r.exit_code else None

    def ls(self, path: str) -> LsResult:
        r = super().ls(path)
        why = None if r.entries else self._why()
        return LsResult(error=why) if why else r

    async def als(self, path: str) -> LsResult:
        r = await super().als(path)
        why = None if r.entries else await self._awhy()
        return LsResult(error=why) if why else r

    def delete(self, file_path: str) -> DeleteResult:
        r = super().delete(file_path)
        why = self._why() if r.error else None
        return DeleteResult(error=why) if why else r


class DurwardSandbox(HonestSandbox):
    """Runs an agent's commands and keeps its files in one sandbox. Never raises for what goes wrong
    with a command or a file: the answer says it.

    The image must have python3, GNU grep and a POSIX shell, as BaseSandbox wants."""

    def __init__(self, sandbox: Sandbox, *, timeout: int = DEFAULT_TIMEOUT) -> None:
        """timeout: of commands for which none is given; seconds, 0: none."""
        self.sandbox = sandbox
        self._timeout = timeout
        self._async = AsyncSandbox(AsyncDurward(sandbox.client.socket), sandbox.info)

    @classmethod
    def create(cls, policy: str | None = None, *, socket: str | os.PathLike[str] | None = None,
               timeout: int = DEFAULT_TIMEOUT, labels: Mapping[str, str] | None = None,
               env: Mapping[str, str] | None = None, name: str | None = None, ttl: int | None = None,
               idle_ttl: int | None = None, image: str | None = None,
               snapshot: str | None = None, volumes: Sequence[str] = ()) -> DurwardSandbox:
        """A new sandbox; see durward.Durward.create."""
        return cls(Durward(socket).create(policy, name=name, labels=labels, env=env, ttl=ttl,
                                          idle_ttl=idle_ttl, image=image, snapshot=snapshot, volumes=volumes),
                   timeout=timeout)

    @classmethod
    def from_id(cls, sandbox_id: str, *, socket: str | os.PathLike[str] | None = None,
                timeout: int = DEFAULT_TIMEOUT) -> DurwardSandbox:
        """One that exists; durward.NotFound when it does not."""
        return cls(Durward(socket).get(sandbox_id), timeout=timeout)

    @property
    def id(self) -> str:
        return self.sandbox.id

    def close(self) -> None:
        """Delete the sandbox."""
        self.sandbox.delete()

    def __enter__(self) -> DurwardSandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- commands ----

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        limit = self._timeout if timeout is None else timeout
        try:
            return _executed(self.sandbox.exec(command, timeout=limit), limit)
        except DurwardError as e:
            return ExecuteResponse(output=str(e), exit_code=1)

    async def aexecute(self, command: str, *,
                       timeout: int | None = None) -> ExecuteResponse:
        limit = self._timeout if timeout is None else timeout
        try:
            return _executed(await self._async.exec(command, timeout=limit), limit)
        except DurwardError as e:
            return ExecuteResponse(output=str(e), exit_code=1)

    # ---- files ----

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        try:
            return [_uploaded(r) for r in self.sandbox.upload(files)]
        except DurwardError as e:
            return [FileUploadResponse(path=path, error=str(e)) for path, _ in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        try:
            return [_downloaded(r) for r in self.sandbox.download(paths)]
        except DurwardError as e:
            return [FileDownloadResponse(path=path, error=str(e)) for path in paths]

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        try:
            return [_uploaded(r) for r in await self._async.upload(files)]
        except DurwardError as e:
            return [FileUploadResponse(path=path, error=str(e)) for path, _ in files]

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        try:
            return [_downloaded(r) for r in await self._async.download(paths)]
        except DurwardError as e:
            return [FileDownloadResponse(path=path, error=str(e)) for path in paths]


def _executed(r: ExecResult, limit: int) -> ExecuteResponse:
    output = r.text
    for more in (r.message, "Command timed out after %d seconds" % limit if r.timed_out else ""):
        if more:
            output += ("\n" if output and not output.endswith("\n") else "") + more
    return ExecuteResponse(output=output, exit_code=r.exit_code, truncated=r.truncated)


def _error(r: FileResult) -> Any:
    if r.error is None:
        return None
    return _LITERALS.get(r.error.code, str(r.error))


def _uploaded(r: FileResult) -> FileUploadResponse:
    return FileUploadResponse(path=r.path, error=_error(r))


def _downloaded(r: FileResult) -> FileDownloadResponse:
    return FileDownloadResponse(path=r.path, content=r.data, error=_error(r))
