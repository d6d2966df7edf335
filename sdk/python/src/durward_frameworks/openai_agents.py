"""OpenAI's Agents SDK: what its ShellTool and ApplyPatchTool run, in a sandbox.

    ShellTool(executor=shell(box)), ApplyPatchTool(editor=Editor(box))
"""
from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable

from agents import apply_diff
from agents.editor import ApplyPatchOperation, ApplyPatchResult
from agents.tool import ShellCallOutcome, ShellCommandOutput, ShellCommandRequest, ShellResult

from durward import AsyncSandbox, DurwardError

OUTPUT_MAX = 1 << 20  # bytes kept of each command's output


def shell(box: AsyncSandbox, *, cwd: str | None = None,
          timeout: int = 600) -> Callable[[ShellCommandRequest], Awaitable[ShellResult]]:
    """The executor of a ShellTool. timeout: seconds of a command for which the model asks none, or more."""
    async def run(request: ShellCommandRequest) -> ShellResult:
        asked = request.data.action
        seconds = min(max(1, (asked.timeout_ms + 999) // 1000), timeout) if asked.timeout_ms else timeout
        output = [await _one(box, command, cwd, seconds) for command in asked.commands]
        return ShellResult(output=output, max_output_length=asked.max_output_length)
    return run


async def _one(box: AsyncSandbox, command: str, cwd: str | None, timeout: int) -> ShellCommandOutput:
    try:
        r = await box.exec(command, cwd=cwd, timeout=timeout, split=True, max_output=OUTPUT_MAX)
    except DurwardError as e:  # for the model: what to do stands in it
        return ShellCommandOutput(stderr=str(e), outcome=ShellCallOutcome("exit", 1), command=command)
    outcome = ShellCallOutcome("timeout") if r.timed_out else ShellCallOutcome("exit", r.exit_code)
    more = "\n[output was cut at 1 MiB]" if r.truncated else ""
    return ShellCommandOutput(r.text, r.stderr.decode("utf-8", "replace") + more, outcome, command)


class Editor:
    """The editor of an ApplyPatchTool: files of a sandbox. Relative paths are below `root`, absolute ones as they are;
    the sandbox is what bounds them."""

    def __init__(self, box: AsyncSandbox, root: str = "/workspace") -> None:
        self.box, self.root = box, root

    def _at(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.root, path))

    async def create_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._tried(self._create(operation))

    async def update_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._tried(self._update(operation))

    async def delete_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._tried(self.box.remove(self._at(operation.path)))

    async def _create(self, operation: ApplyPatchOperation) -> None:
        text = apply_diff("", operation.diff or "", mode="create")
        await self.box.write(self._at(operation.path), text.encode(), if_version="none")

    async def _update(self, operation: ApplyPatchOperation) -> None:
        """Only the version that was read is replaced: what somebody else saves meanwhile stays."""
        path = self._at(operation.path)
        version = (await self.box.stat(path)).version
        text = apply_diff((await self.box.read(path)).decode(), operation.diff or "")
        to = self._at(operation.move_to) if operation.move_to else path
        await self.box.write(to, text.encode(), if_version=version if to == path else "none")
        if to != path:
            await self.box.remove(path, if_version=version)

    @staticmethod
    async def _tried(work: Awaitable[None]) -> ApplyPatchResult:
        try:
            await work
        except (DurwardError, ValueError) as e:
            return ApplyPatchResult(status="failed", output=str(e))
        return ApplyPatchResult(status="completed")
