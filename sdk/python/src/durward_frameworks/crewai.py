"""CrewAI: tools whose commands, Python and files are in a sandbox.

    with Durward().create("coder") as box:
        Agent(role="coder", goal="...", backstory="...", tools=sandbox_tools(box))

CrewAI has no executor of its own any more (`allow_code_execution` is deprecated): what runs code is a tool. What goes
wrong is an answer for the model: what to do stands in it."""
from __future__ import annotations

import posixpath
from typing import Any

from crewai.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field

from durward import DurwardError, Sandbox

OUTPUT_MAX = 1 << 20  # bytes kept of each command's output
READ_MAX = 1 << 20  # bytes of a file that the model is shown


class CommandArguments(BaseModel):
    command: str = Field(..., description="A command for /bin/sh.")
    cwd: str | None = Field(None, description="Where it runs, if not in the workspace.")
    timeout: int | None = Field(None, description="Seconds; then it is killed and its exit code is 124.", ge=1)


class PythonArguments(BaseModel):
    code: str = Field(..., description="A program in Python; what it prints comes back.")


class ReadArguments(BaseModel):
    path: str = Field(..., description="A text file; a relative path is below the workspace.")


class WriteArguments(ReadArguments):
    content: str = Field(..., description="All of its new text.")


class SandboxTool(BaseTool):
    """timeout: seconds of a command for which the model asks none, or more."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    box: Any = Field(exclude=True, repr=False)
    timeout: int = 600

    def _run(self, **arguments: Any) -> str:
        try:
            return self.work(**arguments)
        except DurwardError as e:
            return "error: %s" % e

    def work(self, *args: Any, **arguments: Any) -> str:
        raise NotImplementedError

    def _ran(self, command: str | list[str], cwd: str | None = None, timeout: int | None = None) -> str:
        seconds = min(timeout or self.timeout, self.timeout)
        r = self.box.exec(command, cwd=cwd and self._at(cwd), timeout=seconds, max_output=OUTPUT_MAX)
        more = "\n[output was cut at 1 MiB]" if r.truncated else ""
        return "exit code %d%s\n%s%s" % (r.exit_code, " (killed after %d s)" % seconds if r.timed_out else "", r.text, more)

    def _at(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.box.info.workdir, path))


class SandboxShell(SandboxTool):
    name: str = "sandbox_shell"
    description: str = "Runs a command in a sandbox; says its exit code and its output."
    args_schema: type[BaseModel] = CommandArguments

    def work(self, command: str, cwd: str | None = None, timeout: int | None = None) -> str:
        return self._ran(command, cwd, timeout)


class SandboxPython(SandboxTool):
    name: str = "sandbox_python"
    description: str = "Runs a program in Python in a sandbox; says its exit code and what it printed."
    args_schema: type[BaseModel] = PythonArguments

    def work(self, code: str) -> str:
        return self._ran(["python3", "-c", code])


class SandboxRead(SandboxTool):
    name: str = "sandbox_read_file"
    description: str = "Reads a text file of a sandbox."
    args_schema: type[BaseModel] = ReadArguments

    def work(self, path: str) -> str:
        data: bytes = self.box.read(self._at(path))
        return data[:READ_MAX].decode("utf-8", "replace") + ("\n[cut at 1 MiB]" if len(data) > READ_MAX else "")


class SandboxWrite(SandboxTool):
    name: str = "sandbox_write_file"
    description: str = "Writes a text file in a sandbox, over what was there."
    args_schema: type[BaseModel] = WriteArguments

    def work(self, path: str, content: str) -> str:
        self.box.write(self._at(path), content.encode())
        return "written"


def sandbox_tools(box: Sandbox, *, timeout: int = 600) -> list[BaseTool]:
    """Shell, Python, reading and writing of one sandbox, which stays yours to delete."""
    return [kind(box=box, timeout=timeout) for kind in (SandboxShell, SandboxPython, SandboxRead, SandboxWrite)]
