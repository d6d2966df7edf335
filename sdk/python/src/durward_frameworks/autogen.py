"""AutoGen: a CodeExecutor whose code blocks run in a sandbox.

    async with SandboxCodeExecutor("coder") as executor:
        agent = CodeExecutorAgent("coder", code_executor=executor)
"""
from __future__ import annotations

import asyncio
import secrets

from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, CodeExecutor, CodeResult
from pydantic import BaseModel
from typing_extensions import Self

from durward import AsyncDurward, AsyncSandbox

PROGRAMS = {"python": ("python3", "py"), "py": ("python3", "py"), "bash": ("bash", "sh"), "shell": ("sh", "sh"),
            "sh": ("sh", "sh")}


class SandboxCodeExecutorConfig(BaseModel):
    policy: str | None = None
    template: str | None = None
    timeout: int = 60


class SandboxCodeExecutor(CodeExecutor):
    """A sandbox from start() to stop(); files stay from one block to the next. Blocks run in order, and the first that
    fails is the last. timeout: seconds of a block, then its exit code is 124."""

    component_config_schema = SandboxCodeExecutorConfig
    component_provider_override = "durward_frameworks.autogen.SandboxCodeExecutor"

    def __init__(self, policy: str | None = None, *, template: str | None = None, timeout: int = 60,
                 client: AsyncDurward | None = None) -> None:
        self.config = SandboxCodeExecutorConfig(policy=policy, template=template, timeout=timeout)
        self._client = client or AsyncDurward()
        self._box: AsyncSandbox | None = None

    async def start(self) -> None:
        if self._box is None:
            self._box = await self._client.create(self.config.policy, template=self.config.template,
                                                  labels={"made-by": "autogen"})

    async def stop(self) -> None:
        box, self._box = self._box, None
        if box is not None:
            await box.delete()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def execute_code_blocks(self, code_blocks: list[CodeBlock],
                                  cancellation_token: CancellationToken) -> CodeResult:
        if self._box is None:
            raise RuntimeError("the executor was not started: use `async with`, or start()")
        output = ""
        for block in code_blocks:
            if block.language.lower() not in PROGRAMS:
                return CodeResult(1, output + "unknown language %s\n" % block.language)
            work = asyncio.ensure_future(self._block(self._box, block))
            cancellation_token.link_future(work)  # cancelled, it kills the command
            code, text = await work
            output += text
            if code != 0:
                return CodeResult(code, output)
        return CodeResult(0, output)

    async def _block(self, box: AsyncSandbox, block: CodeBlock) -> tuple[int, str]:
        program, ending = PROGRAMS[block.language.lower()]
        path = "%s/block-%s.%s" % (box.info.workdir, secrets.token_hex(8), ending)
        await box.write(path, block.code.encode())
        r = await box.exec([program, path], timeout=self.config.timeout)
        return r.exit_code, r.text

    def _to_config(self) -> SandboxCodeExecutorConfig:
        return self.config

    @classmethod
    def _from_config(cls, config: SandboxCodeExecutorConfig) -> Self:
        return cls(config.policy, template=config.template, timeout=config.timeout)
