"""smolagents: a PythonExecutor whose code runs in a sandbox, in one interpreter from step to step.

    with Durward().create("coder") as box, SandboxPythonExecutor(box) as executor:
        CodeAgent(tools=[], model=model, executor=executor).run("...")

An image needs python3 and what the code imports; nothing is installed by itself. What comes back is read as JSON, never
as a pickle: the sandbox's word is data."""
from __future__ import annotations

import json
import re
import socket
from typing import Any

from smolagents import AgentError
from smolagents.local_python_executor import CodeOutput
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.tools import get_tools_definition_code
from typing_extensions import Self

from durward import DurwardError, Sandbox

REPLY_MAX = 8 << 20
PICTURES = re.compile(r"^(?:import|from) (?:PIL|numpy)\b.*$", re.MULTILINE)
# Inside: says its port, then runs each line of JSON that comes on the one connection, and answers with one.
RUNNER = r"""
import ast, contextlib, io, json, socket, sys, traceback
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
f = s.accept()[0].makefile("rw", encoding="utf-8", newline="\n")
names = {"__name__": "__main__"}
def run(code):
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<step>", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "<step>", "eval"), names)
for line in f:
    out, said = io.StringIO(), {"result": None, "error": None}
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            v = run(json.loads(line))
            said["result"] = v if isinstance(v, (str, int, float, bool, type(None))) else repr(v)
        except BaseException as e:
            said["error"] = [type(e).__name__, str(e), traceback.format_exc(limit=-3)]
    said["logs"] = out.getvalue()[-1000000:]
    f.write(json.dumps(said) + "\n")
    f.flush()
"""


class SandboxPythonExecutor(RemotePythonExecutor):
    """timeout: seconds of a step; one that takes longer ends the interpreter, and with it this executor."""

    def __init__(self, box: Sandbox, *, timeout: int = 600, logger: AgentLogger | None = None) -> None:
        super().__init__([], logger or AgentLogger(level=LogLevel.ERROR), allow_pickle=False)
        self.box = box
        self._out: Any = box.stream(["python3", "-u", "-c", RUNNER], timeout=0)
        first: Any = next(self._out)
        self._sock: socket.socket = box.forward(int(first.data))
        self._sock.settimeout(timeout)
        self._file = self._sock.makefile("rwb")

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        try:
            self._file.write(json.dumps(code).encode() + b"\n")
            self._file.flush()
            line = self._file.readline(REPLY_MAX)
        except OSError as e:
            raise AgentError("the sandbox's interpreter did not answer: %s" % e, self.logger) from e
        if not line.endswith(b"\n"):
            raise AgentError("the sandbox's interpreter has ended, or said too much", self.logger)
        said: dict[str, Any] = json.loads(line)
        error, logs = said["error"], str(said["logs"])
        if error is None:
            return CodeOutput(output=said["result"], logs=logs, is_final_answer=False)
        if error[0] == self.FINAL_ANSWER_EXCEPTION:
            answer = self._deserialize_final_answer(error[1], self.allow_pickle)
            return CodeOutput(output=answer, logs=logs, is_final_answer=True)
        raise AgentError("%s\n%s: %s\n%s" % (logs, *error), self.logger)

    def send_tools(self, tools: dict[str, Any]) -> None:
        """Their definitions. Nothing is installed: the image has what they import, or the import says inside that it has
        not. What smolagents' own answer needs for pictures and arrays alone may be missing."""
        if "final_answer" in tools:
            self._patch_final_answer_with_exception(tools["final_answer"])
        code = get_tools_definition_code(tools)
        if code:
            self.run_code_raise_errors(PICTURES.sub(r"try:\n    \g<0>\nexcept ImportError:\n    pass", code))

    def cleanup(self) -> None:
        self._sock.close()
        self._out.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.cleanup()
        except DurwardError:
            pass  # the sandbox went before
