"""Deno: allow_net names the proxy's host and port."""
from __future__ import annotations

import shlex
from contextlib import ExitStack
from typing import Any

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse, SandboxBackendProtocol
from deepagents.backends.sandbox import BaseSandbox
from deno_sandbox import DenoDeploy

from .base import PairedProvider, SandboxNotFoundError, Wish, key_of, missing

LABELS_MAX = 5
DEFAULT_TIMEOUT = 30 * 60


class DenoProvider(PairedProvider):
    """DENO_DEPLOY_TOKEN; DENO_SANDBOX_ENDPOINT where it is not the usual one. At most five labels. The image
    must have python3."""

    name, working_dir, package, module = "durward-deno", "/home/app", "deno-sandbox", "deno_sandbox"
    locked = frozenset({"env", "allow_net", "secrets"})

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, tuple[ExitStack, Any]] = {}

    def _entered(self, opened: Any) -> Any:
        """Deno's own object is a context: left when the sandbox is deleted."""
        stack = ExitStack()
        box = stack.enter_context(opened)
        self._open[box.id] = (stack, box)
        return box

    def create(self, wish: Wish) -> Any:
        api = DenoDeploy({"token": key_of("DENO_DEPLOY_TOKEN")}).sandbox
        places = dict.fromkeys((wish.gate.host, *wish.gate.addresses))
        allow = ["%s:%d" % ("[%s]" % p if ":" in p else p, wish.gate.port) for p in places]
        return self._entered(api.create(
            **{"timeout": "%ds" % wish.life, **wish.options}, env=wish.env, allow_net=allow,
            labels=dict(list(wish.labels.items())[:LABELS_MAX])))

    def attach(self, sandbox_id: str) -> Any:
        api = DenoDeploy({"token": key_of("DENO_DEPLOY_TOKEN")}).sandbox
        try:
            return self._entered(api.connect(sandbox_id))
        except Exception as e:
            if "404" in str(e):
                raise missing(sandbox_id) from e
            raise

    def destroy(self, sandbox_id: str) -> None:
        """By its id alone; the connection is left as well if it is ours."""
        held = self._open.pop(sandbox_id, None)
        if held is None:
            try:
                self.attach(sandbox_id)
            except SandboxNotFoundError:
                return
            held = self._open.pop(sandbox_id)
        stack, box = held
        try:
            box.kill()
        finally:
            stack.close()

    def backend(self, sandbox: Any) -> SandboxBackendProtocol:
        return DenoSandbox(sandbox)


class DenoSandbox(BaseSandbox):
    """Deno has no adapter of its own: what pair() needs of one."""

    def __init__(self, sandbox: Any) -> None:
        self._sandbox = sandbox

    @property
    def id(self) -> str:
        return str(self._sandbox.id)

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        limit = DEFAULT_TIMEOUT if timeout is None else timeout
        whole = "exec 2>&1; " + ("exec timeout -k 5 %d sh -c %s" % (limit, shlex.quote(command)) if limit else command)
        try:
            child = self._sandbox.spawn("sh", args=["-c", whole], stdin="null", stdout="piped", stderr="null")
            output = child.stdout.read(-1)
            code = int(child.wait()["code"])
        except Exception as e:
            return ExecuteResponse(output=str(e), exit_code=1)
        text = output.decode("utf-8", "replace")
        if limit and code == 124:
            text += "\nCommand timed out after %d seconds" % limit
        return ExecuteResponse(output=text, exit_code=code)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        done = []
        for path, data in files:
            try:
                self._sandbox.fs.mkdir(path.rpartition("/")[0] or "/", recursive=True)
                self._sandbox.fs.write_file(path, data)
                done.append(FileUploadResponse(path=path))
            except Exception as e:
                done.append(FileUploadResponse(path=path, error=str(e)))
        return done

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        done = []
        for path in paths:
            try:
                done.append(FileDownloadResponse(path=path, content=self._sandbox.fs.read_file(path)))
            except Exception as e:
                done.append(FileDownloadResponse(path=path, error=str(e)))
        return done
