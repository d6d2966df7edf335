"""E2B: deny_out everything, allow_out the proxy's address."""
from __future__ import annotations

from typing import Any

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse, SandboxBackendProtocol
from deepagents.backends.sandbox import BaseSandbox
from e2b import CommandExitException, NotFoundException, Sandbox, TimeoutException

from .base import PairedProvider, Wish, key_of, missing

DEFAULT_TIMEOUT = 30 * 60


class E2BProvider(PairedProvider):
    """E2B_API_KEY; E2B_DOMAIN or E2B_API_URL where they are not the usual ones."""

    name, working_dir, package, module = "durward-e2b", "/home/user", "e2b", "e2b"
    locked = frozenset({"envs", "network", "iam", "allow_internet_access", "mcp"})

    def create(self, wish: Wish) -> Any:
        return Sandbox.create(**{"timeout": wish.life, **wish.options}, envs=wish.env, metadata=wish.labels,
                              network={"deny_out": ["0.0.0.0/0"], "allow_out": list(wish.gate.networks)},
                              api_key=key_of("E2B_API_KEY"))

    def attach(self, sandbox_id: str) -> Any:
        try:
            return Sandbox.connect(sandbox_id, api_key=key_of("E2B_API_KEY"))
        except NotFoundException as e:
            raise missing(sandbox_id) from e

    def destroy(self, sandbox_id: str) -> None:
        Sandbox.kill(sandbox_id, api_key=key_of("E2B_API_KEY"))  # false when there is none

    def backend(self, sandbox: Any) -> SandboxBackendProtocol:
        return E2BSandbox(sandbox)

    def identify(self, sandbox: Any) -> str:
        return str(sandbox.sandbox_id)


class E2BSandbox(BaseSandbox):
    """The vendor's own adapter wants an older deepagents; this is what pair() needs of one."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    @property
    def id(self) -> str:
        return str(self._sandbox.sandbox_id)

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        limit = DEFAULT_TIMEOUT if timeout is None else timeout
        try:
            r: Any = self._sandbox.commands.run(command, timeout=limit)
        except CommandExitException as e:  # any status but 0
            r = e
        except TimeoutException:
            return ExecuteResponse(output="Command timed out after %d seconds" % limit, exit_code=124)
        except Exception as e:
            return ExecuteResponse(output=str(e), exit_code=1)
        output = r.stdout + ("\n" + r.stderr if r.stdout and r.stderr else r.stderr)
        return ExecuteResponse(output=output, exit_code=r.exit_code)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        done = []
        for path, data in files:
            try:
                self._sandbox.files.write(path, data)
                done.append(FileUploadResponse(path=path))
            except Exception as e:
                done.append(FileUploadResponse(path=path, error=str(e)))
        return done

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        done = []
        for path in paths:
            try:
                data = self._sandbox.files.read(path, format="bytes")
                done.append(FileDownloadResponse(path=path, content=bytes(data)))
            except NotFoundException:
                done.append(FileDownloadResponse(path=path, error="file_not_found"))
            except Exception as e:
                done.append(FileDownloadResponse(path=path, error=str(e)))
        return done
