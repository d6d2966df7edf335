"""OpenAI's Agents SDK: a client of sandboxes (`agents.sandbox`) whose sessions are sandboxes of Durward.

    agent = SandboxAgent(name="coder", model="gpt-5.1")
    run = RunConfig(sandbox=SandboxRunConfig(client=DurwardSandboxClient(), options=DurwardSandboxClientOptions("coder")))
    await Runner.run(agent, "...", run_config=run)

Commands, files, patches, the manifest and snapshots go through the sandbox's own API. A terminal is not offered: a
command that needs one says so inside. `User`s of a manifest need sudo in the image."""
from __future__ import annotations

import asyncio
import io
import math
import tarfile
import uuid
from pathlib import Path
from typing import Any, Literal, NoReturn

from agents.sandbox import (
    ExecResult,
    ExecTimeoutError,
    ExecTransportError,
    ExposedPortEndpoint,
    ExposedPortUnavailableError,
    Manifest,
    SnapshotSpec,
    User,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
    WorkspaceWriteTypeError,
    resolve_snapshot,
)
from agents.sandbox.session import BaseSandboxClient, BaseSandboxClientOptions, BaseSandboxSession, SandboxSession, SandboxSessionState
from agents.sandbox.session.runtime_helpers import RESOLVE_WORKSPACE_PATH_HELPER, RuntimeHelperScript
from agents.sandbox.snapshot import SnapshotBase
from agents.sandbox.util.tar_utils import UnsafeTarMemberError, validate_tar_bytes
from agents.sandbox.workspace_paths import sandbox_path_str

from durward import AsyncDurward, AsyncSandbox, Conflict, DurwardError, FileError, NotFound, Unavailable

OUTPUT_MAX = 8 << 20  # bytes kept of each output of a command


class DurwardSandboxClientOptions(BaseSandboxClientOptions):
    """What the sandbox of a run is. Nothing is needed where the daemon has one policy.

    timeout: seconds of a command for which nobody asks another. keep: at the session's end the sandbox is stopped and its
    files stay, so that resume() finds it; else it is deleted. exposed_ports: of its loopback, published on this host."""

    type: Literal["durward"] = "durward"
    policy: str | None = None
    template: str | None = None
    image: str | None = None
    env: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    volumes: tuple[str, ...] = ()
    exposed_ports: tuple[int, ...] = ()
    ttl: int | None = None
    idle_ttl: int | None = None
    timeout: int = 1800
    keep: bool = False

    def __init__(self, policy: str | None = None, **more: Any) -> None:
        super().__init__(policy=policy, **more)


class DurwardSandboxSessionState(SandboxSessionState):
    type: Literal["durward"] = "durward"
    sandbox_id: str
    options: DurwardSandboxClientOptions


class DurwardSandboxSession(BaseSandboxSession):
    state: DurwardSandboxSessionState

    def __init__(self, state: DurwardSandboxSessionState, box: AsyncSandbox) -> None:
        self.state, self.box = state, box

    # ---- life ----

    async def running(self) -> bool:
        try:
            return (await self.box.refresh()).state == "running"
        except DurwardError:
            return False

    async def _prepare_backend_workspace(self) -> None:
        """The root is there before anything has it as its working directory."""
        await self._run(["mkdir", "-p", "--", sandbox_path_str(self.state.manifest.root)], "/", None)

    async def _shutdown_backend(self) -> None:
        try:
            await (self.box.stop() if self.state.options.keep else self.box.delete())
        except (NotFound, Conflict):
            pass  # it ended before

    # ---- commands ----

    async def _exec_internal(self, *command: str | Path, timeout: float | None = None) -> ExecResult:
        return await self._run([str(c) for c in command], sandbox_path_str(self.state.manifest.root), timeout)

    async def _run(self, argv: list[str], cwd: str, timeout: float | None) -> ExecResult:
        seconds = self.state.options.timeout if timeout is None else max(1, math.ceil(timeout))
        try:
            env = await self.state.manifest.environment.resolve()
            r = await asyncio.wait_for(self.box.exec(
                argv, cwd=cwd, env=env or None, timeout=seconds, split=True, max_output=OUTPUT_MAX), timeout)
        except TimeoutError as e:  # cancelled, and so killed
            raise ExecTimeoutError(command=argv, timeout_s=timeout, cause=e) from e
        except DurwardError as e:
            raise ExecTransportError(command=argv, context={"backend": "durward", "reason": e.code}, cause=e, message=str(e),
                                     retryable=isinstance(e, Unavailable)) from e
        if r.timed_out:
            raise ExecTimeoutError(command=argv, timeout_s=seconds)
        more = b"\n[output was cut at 8 MiB]" if r.truncated else b""
        return ExecResult(stdout=r.output, stderr=r.stderr + more, exit_code=r.exit_code)

    async def _resolve_exposed_port(self, port: int) -> ExposedPortEndpoint:
        for p in (await self.box.refresh()).published:
            if p.port == port:
                host, _, at = p.address.rpartition(":")
                return ExposedPortEndpoint(host=host.strip("[]"), port=int(at))
        raise ExposedPortUnavailableError(port=port, exposed_ports=self.state.exposed_ports, reason="backend_unavailable",
                                          context={"backend": "durward"})

    # ---- files ----

    def _runtime_helpers(self) -> tuple[RuntimeHelperScript, ...]:
        return (RESOLVE_WORKSPACE_PATH_HELPER,)

    async def _validate_path_access(self, path: Path | str, *, for_write: bool = False) -> Path:
        at: Path = await self._validate_remote_path_access(path, for_write=for_write)
        return at

    async def read(self, path: Path, *, user: str | User | None = None) -> io.IOBase:
        at = await (self._validate_path_access(path) if user is None else self._check_read_with_exec(path, user=user))
        try:
            return io.BytesIO(await self.box.read(sandbox_path_str(at)))
        except FileError as e:
            if e.code == "file_not_found":
                raise WorkspaceReadNotFoundError(path=at, cause=e) from e
            self._unread(at, e)
        except DurwardError as e:
            self._unread(at, e)

    async def write(self, path: Path, data: io.IOBase, *, user: str | User | None = None) -> None:
        if user is not None:
            await self._check_write_with_exec(path, user=user)
        at = await self._validate_path_access(path, for_write=True)
        try:
            await self.box.write(sandbox_path_str(at), _bytes(data, at))
        except DurwardError as e:
            raise WorkspaceArchiveWriteError(path=at, context={"reason": e.code}, cause=e, message=str(e)) from e

    @staticmethod
    def _unread(path: Path, e: DurwardError) -> NoReturn:
        raise WorkspaceArchiveReadError(path=path, context={"reason": e.code}, cause=e) from e

    # ---- the workspace as an archive ----

    async def persist_workspace(self) -> io.IOBase:
        root = self._workspace_root_path()
        try:
            whole = await self.box.read_tar(root.as_posix())
        except DurwardError as e:
            self._unread(root, e)
        skip = self._persist_workspace_skip_relpaths()
        return io.BytesIO(_without(whole, skip) if skip else whole)

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        root = self._workspace_root_path()
        archive = _bytes(data, root)
        try:
            validate_tar_bytes(archive, allow_external_symlink_targets=False)
            await self.box.write_tar(root.as_posix(), archive)
        except UnsafeTarMemberError as e:
            raise WorkspaceArchiveWriteError(path=root, context={"reason": "unsafe_or_invalid_tar", "member": e.member}, cause=e) from e
        except DurwardError as e:
            raise WorkspaceArchiveWriteError(path=root, context={"reason": e.code}, cause=e, message=str(e)) from e


def _bytes(data: io.IOBase, path: Path) -> bytes:
    payload: Any = data.read()
    if isinstance(payload, str):
        return payload.encode()
    if not isinstance(payload, (bytes, bytearray)):
        raise WorkspaceWriteTypeError(path=path, actual_type=type(payload).__name__)
    return bytes(payload)


def _without(archive: bytes, skip: set[Path]) -> bytes:
    """The archive less these paths and what is below them."""
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as old, tarfile.open(fileobj=out, mode="w") as new:
        for m in old:
            at = Path(m.name)
            if at not in skip and not any(p in skip for p in at.parents):
                new.addfile(m, old.extractfile(m) if m.isreg() else None)
    return out.getvalue()


class DurwardSandboxClient(BaseSandboxClient[DurwardSandboxClientOptions]):
    backend_id = "durward"
    supports_default_options = True

    def __init__(self, client: AsyncDurward | None = None) -> None:
        self._client = client or AsyncDurward()

    async def _box(self, o: DurwardSandboxClientOptions) -> AsyncSandbox:
        return await self._client.create(
            o.policy, template=o.template, image=o.image, env=o.env, labels={"made-by": "openai-agents", **(o.labels or {})},
            volumes=o.volumes, publish=o.exposed_ports, ttl=o.ttl, idle_ttl=o.idle_ttl)

    async def create(self, *, snapshot: SnapshotSpec | SnapshotBase | None = None, manifest: Manifest | None = None,
                     options: DurwardSandboxClientOptions | None = None) -> SandboxSession:
        manifest = self._validate_manifest_for_create(manifest or Manifest())
        options = options or DurwardSandboxClientOptions()
        box, session_id = await self._box(options), uuid.uuid4()
        state = DurwardSandboxSessionState(
            session_id=session_id, snapshot=resolve_snapshot(snapshot, str(session_id)), manifest=manifest,
            exposed_ports=options.exposed_ports, sandbox_id=box.id, options=options)
        return self._wrap_session(DurwardSandboxSession(state, box))

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        """The same sandbox, awake, where it is still there; else another, with the files of the state's snapshot."""
        if not isinstance(state, DurwardSandboxSessionState):
            raise TypeError("resume expects the state of a sandbox of Durward")
        state.assert_path_grants_rebound()
        try:
            box = await self._client.get(state.sandbox_id)
            if box.info.state != "running":
                await box.resume()
            same = True
        except NotFound:
            box, same = await self._box(state.options), False
            state.sandbox_id, state.workspace_root_ready = box.id, False
        inner = DurwardSandboxSession(state, box)
        inner._set_start_state_preserved(same)
        return self._wrap_session(inner)

    async def delete(self, session: SandboxSession) -> SandboxSession:
        inner = session._inner
        if not isinstance(inner, DurwardSandboxSession):
            raise TypeError("delete expects a session of Durward")
        await inner.shutdown()
        return session

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        return self._deserialize_session_state_payload(payload, DurwardSandboxSessionState)
