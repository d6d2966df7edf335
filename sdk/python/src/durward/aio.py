"""The client for asyncio: the same calls, on asyncio's own streams (no threads)."""
from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Coroutine, Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from . import _calls
from ._address import CONNECT_SECONDS, Where, socket_path
from ._calls import Call, Publish
from ._frames import CHUNK, Frames, Source, frame, pieces
from ._http import HEAD_MAX, answer, request
from .client import as_connection_error, as_file_error, audit_record, ended_early, file_event, plain, stream_item
from .errors import BadRequest, DurwardError, FileError, refusal, unreachable
from .models import (
    Approval,
    Decision,
    Event,
    ExecOutput,
    ExecResult,
    Explanation,
    FileEntry,
    FileEvent,
    FileResult,
    Fleet,
    Identity,
    Preview,
    RunningExec,
    SandboxInfo,
    Service,
    Snapshot,
    Template,
    Volume,
)

T = TypeVar("T")
_BROKEN = (OSError, EOFError, ValueError, http.client.HTTPException, asyncio.LimitOverrunError, asyncio.TimeoutError)


async def _connect(where: Where) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if where.remote:
        host, port = where.endpoint
        opening = asyncio.open_connection(host, port, ssl=where.tls(), limit=HEAD_MAX)
    else:
        opening = _connect_unix(where)
    return await asyncio.wait_for(opening, CONNECT_SECONDS)


async def _connect_unix(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A unix socket's queue that is full is EAGAIN, which asyncio takes for a connection that is being made."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        s.setblocking(False)
        while True:
            try:
                s.connect(path)
                break
            except BlockingIOError:
                await asyncio.sleep(0.01)
        return await asyncio.open_unix_connection(sock=s, limit=HEAD_MAX)
    except BaseException:
        s.close()
        raise


class _Exchange:
    """One request and its answer, on a connection of its own."""

    def __init__(self, where: Where) -> None:
        self.where = where
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter | None = None
        self.answer: http.client.HTTPResponse

    async def ask(self, call: Call[Any]) -> None:
        self.reader, writer = await _connect(self.where)
        self.writer = writer
        writer.write(request(call.method, call.target, call.body, {"Connection": "close", **self.where.headers}))
        await writer.drain()
        self.answer = answer(await self.reader.readuntil(b"\r\n\r\n"), call.method)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        while self.answer.chunked:
            size = int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16)
            if size == 0:
                return
            yield await self.reader.readexactly(size)
            await self.reader.readexactly(2)
        left = self.answer.length  # None: until the end
        while left is None or left > 0:
            data = await self.reader.read(min(1 << 20, left or 1 << 20))
            if not data:
                if left:
                    raise EOFError("the answer was cut")
                return
            left = left and left - len(data)
            yield data

    async def body(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


class Making(Coroutine[Any, Any, "AsyncSandbox"]):
    """A sandbox to come: `box = await x`, or `async with x as box`, which deletes it at the end."""

    def __init__(self, making: Coroutine[Any, Any, AsyncSandbox]) -> None:
        self._making = making
        self._box: AsyncSandbox | None = None

    def __await__(self) -> Generator[Any, None, AsyncSandbox]:
        return self._making.__await__()

    def send(self, value: Any) -> Any:
        return self._making.send(value)

    def throw(self, *error: Any) -> Any:
        return self._making.throw(*error)

    def close(self) -> None:
        self._making.close()

    async def __aenter__(self) -> AsyncSandbox:
        self._box = await self._making
        return self._box

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        if self._box is not None:
            await self._box.delete()


class AsyncDurward:
    """A daemon, as Durward."""

    def __init__(self, socket: str | os.PathLike[str] | None = None, *, token: str | None = None,
                 ca: str | os.PathLike[str] | None = None, retries: int = 2, timeout: float = 60) -> None:
        self.socket = socket_path(socket, token, ca)
        self.pauses = _calls.pauses(retries)
        self.timeout = timeout

    def __repr__(self) -> str:
        return "AsyncDurward(%r)" % self.socket

    async def _begin(self, x: _Exchange, call: Call[Any]) -> None:
        await asyncio.wait_for(x.ask(call), call.seconds(self.timeout))
        if x.answer.status // 100 != 2:
            raise refusal(x.answer.status, await x.body(), call.of_file)

    async def _do(self, call: Call[T]) -> T:
        for pause in self.pauses:
            try:
                return await self._once(call)
            except DurwardError as e:
                if not _calls.worth_another(call, e):
                    raise
                await asyncio.sleep(pause)
        return await self._once(call)

    async def _once(self, call: Call[T]) -> T:
        x = _Exchange(self.socket)
        try:
            await self._begin(x, call)
            body = await asyncio.wait_for(x.body(), call.seconds(self.timeout))
        except _BROKEN as e:
            raise unreachable(self.socket, as_os_error(e)) from e
        finally:
            x.close()
        return call.read(body)

    async def _upgrade(self, wanted: tuple[str, str]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            reader, writer = await _connect(self.socket)
        except _BROKEN as e:
            raise unreachable(self.socket, as_os_error(e)) from e
        try:
            writer.write(_calls.upgrade(wanted, self.socket.headers))
            given = answer(await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), self.timeout), "POST")
            if given.status != 101:
                raise refusal(given.status, await asyncio.wait_for(reader.readexactly(given.length or 0), self.timeout), False)
            return reader, writer
        except BaseException as e:
            writer.close()
            if isinstance(e, _BROKEN):
                raise unreachable(self.socket, as_os_error(e)) from e
            raise

    async def version(self) -> str:
        """Of the daemon; Unavailable when there is none."""
        return await self._do(_calls.health())

    async def status(self) -> dict[str, Any]:
        """Roles, listeners and sandboxes, as the API's document has them."""
        return await self._do(_calls.status())

    async def fleet(self) -> Fleet:
        """All hosts of the fleet, as this one knows them. `host` None: its configuration has none."""
        return await self._do(_calls.fleet())

    async def reload(self) -> None:
        """Read the configuration again; BadRequest with what is wrong in it, and nothing is changed."""
        await self._do(_calls.reload())

    async def metrics(self) -> str:
        """In Prometheus' text format."""
        return await self._do(_calls.metrics())

    async def console_url(self) -> str:
        """A link that logs into the console, once."""
        return await self._do(_calls.console())

    async def policies(self) -> list[str]:
        """Names of the configuration's policies that this caller sees."""
        return await self._do(_calls.policies())

    async def policy(self, name: str | None = None) -> dict[str, Any]:
        """Its rules with presets expanded; secrets are names."""
        return await self._do(_calls.policy(name))

    async def explain(self, method: str, url: str, policy: str | None = None, *, text: str | None = None) -> Explanation:
        """What a policy would say to a request; nothing is sent. text: of ssh:// the command, the target or the file (HOST:PORT,
        a path), of smtp:// recipients, of imap:// a folder, as durward(1) says of `explain`."""
        return await self._do(_calls.explain(method, url, policy, text))

    async def events(self, after: int = 0, limit: int = 100) -> list[Event]:
        """What happened to sandboxes, after this sequence number: of the last 1000 since the daemon's controller
        started, `limit` at most (1 to 1000)."""
        return await self._do(_calls.events(after, limit))

    async def query_log(self, **conditions: str | int) -> list[dict[str, Any]]:
        """Records of the audit log, oldest first: since, until, kind, sandbox, policy, host, method, rule,
        credential, status, code, id, text; the newest `limit` (1000) of them."""
        return (await self._do(_calls.query_log(conditions)))[0]

    async def export_case(self, **conditions: str | int) -> bytes:
        """The same records with the proofs that they stand in the log: a file for `durward audit verify --case`."""
        return await self._do(_calls.export_case(conditions))

    async def codes(self) -> dict[str, Any]:
        """What codes of records mean, and how bad they are."""
        return await self._do(_calls.codes())

    async def verify_log(self) -> dict[str, Any]:
        """The whole audit log, read anew: `ok`, `records`, `files`, and where it breaks, `problem`. Takes as long as
        that takes, 300 seconds at most."""
        return await self._do(_calls.verify_log())

    async def audit(self) -> AsyncIterator[dict[str, Any]]:
        """As Durward.audit. Leaving the loop ends it when the iterator is closed (aclose())."""
        x, held = _Exchange(self.socket), b""
        try:
            await self._begin(x, _calls.audit())
            async for piece in x.pieces():
                *lines, held = (held + piece).split(b"\n")
                for record in map(audit_record, lines):
                    if record is not None:
                        yield record
        except _BROKEN as e:
            raise unreachable(self.socket, as_os_error(e)) from e
        finally:
            x.close()

    async def approvals(self, after: int = 0, wait: int = 0) -> list[Approval]:
        """Those that wait. after: only later ones (`sequence`). wait: seconds to wait for one, 60 at most."""
        return (await self._do(_calls.approvals(after, wait)))[0]

    async def approval(self, approval_id: str) -> Approval:
        """One that waits; NotFound when it was decided or ended."""
        return await self._do(_calls.approval(approval_id))

    async def allow(self, approval_id: str) -> Decision:
        """The audit log names who said so. NotFound when somebody was faster, or it ended. Of another host's (`host`):
        Conflict when it was answered otherwise; `taken` False when that host has not taken the answer yet."""
        return await self._do(_calls.decide(approval_id, True))

    async def deny(self, approval_id: str) -> Decision:
        """Its client is answered 403. NotFound when somebody was faster, or it ended. Of another host's (`host`):
        Conflict when it was answered otherwise; `taken` False when that host has not taken the answer yet."""
        return await self._do(_calls.decide(approval_id, False))

    # ---- what was proposed to be allowed ----

    async def proposals(self) -> list[dict[str, Any]]:
        """Oldest first. A sandbox's `reason` is its own words, which may say anything."""
        return await self._do(_calls.proposals())

    async def proposal(self, proposal_id: str) -> dict[str, Any]:
        """With the rule it would become (`diff`), and what that changes (`before`, `after`)."""
        return await self._do(_calls.proposal(proposal_id))

    async def propose(self, method: str, url: str, *, policy: str | None = None,
                sandbox: str | None = None, reason: str | None = None) -> dict[str, Any]:
        """Nothing is allowed by it. The url's path may hold `*` and `**`."""
        return await self._do(_calls.propose(method, url, policy, sandbox, reason))

    async def accept_proposal(self, proposal_id: str) -> dict[str, Any]:
        """Changes no policy: whoever may write the configuration puts the rule there."""
        return await self._do(_calls.decide_proposal(proposal_id, True))

    async def reject_proposal(self, proposal_id: str) -> dict[str, Any]:
        """Conflict when it was accepted."""
        return await self._do(_calls.decide_proposal(proposal_id, False))

    async def suppressions(self) -> list[dict[str, Any]]:
        """Oldest first, those that ended for a while."""
        return await self._do(_calls.suppressions())

    async def suppression(self, suppression_id: str) -> dict[str, Any]:
        """One of them; NotFound when there is none."""
        return await self._do(_calls.suppression(suppression_id))

    async def suppress(self, code: str, host: str, reason: str, expires_in: int, *, policy: str | None = None,
                       method: str | None = None, path: str | None = None,
                       sandbox: str | None = None) -> dict[str, Any]:
        """Hides nothing before it is accepted; then notices leave such findings out until it ends."""
        return await self._do(_calls.suppress(code, host, reason, expires_in, policy, method, path, sandbox))

    async def accept_suppression(self, suppression_id: str) -> dict[str, Any]:
        """Not by the token that wrote it."""
        return await self._do(_calls.accept_suppression(suppression_id))

    async def lift_suppression(self, suppression_id: str) -> dict[str, Any]:
        """It ends now; one that is open is withdrawn."""
        return await self._do(_calls.lift_suppression(suppression_id))

    async def snapshots(self) -> list[Snapshot]:
        """Oldest first."""
        return await self._do(_calls.snapshots())

    async def snapshot(self, name: str) -> Snapshot:
        """NotFound when there is none of this name."""
        return await self._do(_calls.show_snapshot(name))

    async def delete_snapshot(self, name: str) -> None:
        """Idempotent. Sandboxes made of it stay."""
        await self._do(_calls.delete_snapshot(name))

    async def export_snapshot(self, name: str) -> AsyncIterator[bytes]:
        """As Durward.export_snapshot."""
        frames = Frames()
        reader, writer = await self._upgrade(_calls.archive(name, "export"))
        try:
            while frames.last is None:
                for piece in frames.feed(await _received(reader)):
                    yield piece
            frames.snapshot()
        except OSError as e:
            raise unreachable(self.socket, e) from e
        finally:
            writer.close()

    async def import_snapshot(self, name: str, archive: Source | AsyncIterable[bytes]) -> Snapshot:
        """As Durward.import_snapshot; the archive may be an asynchronous iterator, too."""
        reader, writer = await self._upgrade(_calls.archive(name, "import"))
        answer = asyncio.ensure_future(_last_word(reader))
        try:
            async for piece in _pieces(archive):
                if not await _sent(writer, piece, answer):
                    break
            else:
                await _sent(writer, b"", answer)
            return (await answer).snapshot()
        except OSError as e:
            if not answer.done():
                raise  # the archive's own
            raise unreachable(self.socket, e) from e
        finally:
            answer.cancel()
            writer.close()

    async def templates(self) -> list[Template]:
        """What create(template=NAME) takes, and how many are ready."""
        return await self._do(_calls.templates())

    async def template(self, name: str) -> Template:
        """NotFound when there is none that this token sees."""
        return await self._do(_calls.template(name))

    async def create_volume(self, name: str, policy: str | None = None, *, size: int | None = None,
                            access: str | None = None, labels: Mapping[str, str] | None = None,
                            clone_of: str | None = None, get_or_create: bool = False) -> Volume:
        """Files that outlive the sandboxes of this policy which mount them: create(volumes=["NAME:/path"]).
        size: bytes (1 MiB to 1 PiB, default 1 GiB). access: "one" sandbox at a time may write (default), or "many". clone_of:
        begin with the files of this volume or snapshot. Conflict where there is one of this name, unless get_or_create."""
        return await self._do(_calls.create_volume(get_or_create, name=name, policy=policy, size=size, access=access,
                                                   labels=plain(labels), **{"from": clone_of}))

    async def volumes(self) -> list[Volume]:
        """With snapshots of volumes; oldest first."""
        return await self._do(_calls.volumes())

    async def volume(self, name: str) -> Volume:
        """With what of it is used, in bytes; NotFound when there is none of this name."""
        return await self._do(_calls.volume(name))

    async def delete_volume(self, name: str) -> None:
        """Idempotent. Conflict (`volume_in_use`) while a sandbox has it."""
        await self._do(_calls.delete_volume(name))

    async def snapshot_volume(self, name: str, snapshot: str) -> Volume:
        """A copy of its files, each as it is just then, as the volume `snapshot`, which nobody mounts."""
        return await self._do(_calls.snapshot_volume(name, snapshot))

    async def restore_volume(self, name: str, snapshot: str) -> Volume:
        """A snapshot's files in place of its own. Conflict while a sandbox that runs has it."""
        return await self._do(_calls.restore_volume(name, snapshot))

    async def export_volume(self, name: str) -> AsyncIterator[bytes]:
        """As Durward.export_volume."""
        frames = Frames()
        reader, writer = await self._upgrade(_calls.export_volume(name))
        try:
            while frames.last is None:
                for piece in frames.feed(await _received(reader)):
                    yield piece
            frames.volume()
        except OSError as e:
            raise unreachable(self.socket, e) from e
        finally:
            writer.close()

    async def issue_identity(self, policy: str | None = None, ttl: int | None = None,
                             remote: bool = False) -> Identity:
        """A token for a sandbox that is not this daemon's. ttl: seconds, 1 to 3600 (default 3600). remote: it is on
        another host, so that the listener is one that can be reached from there, in TLS if there is one."""
        return await self._do(_calls.issue(policy, ttl, remote))

    async def revoke_identity(self, identity: str) -> None:
        """NotFound when it is unknown or revoked."""
        await self._do(_calls.revoke(identity))

    async def _sandbox(self, call: Call[SandboxInfo]) -> AsyncSandbox:
        return AsyncSandbox(self, await self._do(call))

    def create(self, policy: str | None = None, *, name: str | None = None,
               labels: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None,
               ttl: int | None = None, idle_ttl: int | None = None, image: str | None = None,
               snapshot: str | None = None, backend: str | None = None, on_idle: str | None = None,
               soft_ttl: int | None = None, on_soft_ttl: str | None = None,
               auto_resume: bool | None = None, publish: Sequence[Publish] = (),
               volumes: Sequence[str] = (), template: str | None = None) -> Making:
        """As Durward.create: `await` it, or `async with` it, which deletes the sandbox at the end."""
        return Making(self._sandbox(_calls.create(
            False, publish, volumes, policy=policy, name=name, labels=plain(labels), env=plain(env), ttl=ttl, idle_ttl=idle_ttl,
            image=image, snapshot=snapshot, backend=backend, on_idle=on_idle, soft_ttl=soft_ttl,
            on_soft_ttl=on_soft_ttl, auto_resume=auto_resume, template=template)))

    def get_or_create(self, labels: Mapping[str, str], policy: str | None = None, *,
                      name: str | None = None, env: Mapping[str, str] | None = None,
                      ttl: int | None = None, idle_ttl: int | None = None, image: str | None = None,
                      snapshot: str | None = None, backend: str | None = None, on_idle: str | None = None,
                      soft_ttl: int | None = None, on_soft_ttl: str | None = None,
                      auto_resume: bool | None = None, publish: Sequence[Publish] = (),
                      volumes: Sequence[str] = (), template: str | None = None) -> Making:
        """The sandbox that has all these labels, resumed if it sleeps, else a new one; atomic."""
        return Making(self._sandbox(_calls.create(
            True, publish, volumes, policy=policy, name=name, labels=plain(labels), env=plain(env), ttl=ttl, idle_ttl=idle_ttl,
            image=image, snapshot=snapshot, backend=backend, on_idle=on_idle, soft_ttl=soft_ttl,
            on_soft_ttl=on_soft_ttl, auto_resume=auto_resume, template=template)))

    async def sandboxes(self, labels: Mapping[str, str] | None = None, state: str | None = None, *,
                        page_size: int = 100) -> AsyncIterator[SandboxInfo]:
        """Oldest first, page by page. labels: only those that have all of them. state: only those that are creating,
        running, paused, resuming, stopped or stopping. page_size: how many are asked for at a time (1 to 1000)."""
        after: str | None = None
        while True:
            rows, after = await self._do(_calls.page(labels, state, after, page_size))
            for row in rows:
                yield row
            if after is None:
                return

    async def get(self, sandbox_id: str) -> AsyncSandbox:
        """NotFound when there is none."""
        return AsyncSandbox(self, await self._do(_calls.show(sandbox_id)))

    async def delete(self, sandbox_id: str) -> None:
        """Idempotent; answers when nothing of it is left."""
        await self._do(_calls.delete(sandbox_id))


class AsyncSandbox:
    """One sandbox, as Sandbox. With `async with`, it is deleted at the end."""

    def __init__(self, client: AsyncDurward, info: SandboxInfo) -> None:
        self.client = client
        self.info = info

    @property
    def id(self) -> str:
        """What it is found by: get(id)."""
        return self.info.id

    def __repr__(self) -> str:
        return "AsyncSandbox(%r, policy=%r)" % (self.id, self.info.policy)

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.delete()

    async def refresh(self) -> SandboxInfo:
        """Asks again; .info is the answer."""
        self.info = await self.client._do(_calls.show(self.id))
        return self.info

    async def update(self, *, labels: Mapping[str, str] | None = None, ttl: int | None = None,
                     idle_ttl: int | None = None, soft_ttl: int | None = None) -> SandboxInfo:
        """Other labels (all of them anew), other times in seconds; ttl (1 to 2592000) and soft_ttl (0: never) count
        from now, idle_ttl 0 is never."""
        self.info = await self.client._do(_calls.update(self.id, labels, ttl, idle_ttl, soft_ttl))
        return self.info

    async def delete(self) -> None:
        """End it and forget it, with its files. Idempotent; answers when nothing of it is left."""
        await self.client._do(_calls.delete(self.id))

    async def pause(self) -> SandboxInfo:
        """Freeze its processes; Unsupported where the host cannot."""
        self.info = await self.client._do(_calls.pause(self.id))
        return self.info

    async def stop(self) -> SandboxInfo:
        """End its processes; its files stay where info.kept says so."""
        self.info = await self.client._do(_calls.stop(self.id))
        return self.info

    async def resume(self) -> SandboxInfo:
        """It runs when this returns; a stopped one starts anew above its files."""
        self.info = await self.client._do(_calls.resume(self.id))
        return self.info

    def fork(self, *, name: str | None = None, labels: Mapping[str, str] | None = None,
             env: Mapping[str, str] | None = None, ttl: int | None = None, idle_ttl: int | None = None,
             on_idle: str | None = None, soft_ttl: int | None = None, on_soft_ttl: str | None = None,
             auto_resume: bool | None = None) -> Making:
        """Another sandbox with a copy of this one's files, and placeholders of its own."""
        return Making(self.client._sandbox(_calls.fork(
            self.id, name=name, labels=plain(labels), env=plain(env), ttl=ttl, idle_ttl=idle_ttl,
            on_idle=on_idle, soft_ttl=soft_ttl, on_soft_ttl=on_soft_ttl, auto_resume=auto_resume)))

    async def snapshot(self, name: str, *, get_or_create: bool = False) -> Snapshot:
        """Keep a copy of its files. get_or_create: one of this name that is there, whosever."""
        return await self.client._do(_calls.snapshot(self.id, name, get_or_create))

    async def restore(self, snapshot: str) -> SandboxInfo:
        """A snapshot's files in place of its own. What runs in it is ended."""
        self.info = await self.client._do(_calls.restore(self.id, snapshot))
        return self.info

    async def execs(self) -> list[RunningExec]:
        """Commands that run now."""
        return await self.client._do(_calls.execs(self.id))

    async def cancel(self, exec_id: str) -> None:
        """Kill a command and its process group, or forget a kept one that has ended. Idempotent."""
        await self.client._do(_calls.cancel(self.id, exec_id))

    async def forward(self, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to a TCP port of its own loopback. Yours to close."""
        return await self.client._upgrade(_calls.forward(self.id, port))

    async def services(self) -> list[Service]:
        """What its policy names, each looked at now. Of a sandbox that sleeps nothing is asked."""
        return await self.client._do(_calls.services(self.id))

    async def preview(self, service: str | int, *, ttl: int | None = None) -> Preview:
        """As Sandbox.preview."""
        return await self.client._do(_calls.preview(self.id, service, ttl))

    async def revoke_previews(self, service: str | int | None = None) -> None:
        """As Sandbox.revoke_previews."""
        await self.client._do(_calls.revoke_previews(self.id, service))

    async def exec(self, command: str | Sequence[str], *, cwd: str | os.PathLike[str] | None = None,
                   env: Mapping[str, str] | None = None, timeout: int | None = None,
                   stdin: bytes | str | None = None, split: bool = False,
                   max_output: int | None = None) -> ExecResult:
        """As Sandbox.exec; cancelling the task kills the command."""
        wish = _calls.exec_body(command, cwd, env, timeout, stdin, split, max_output)
        try:
            return await self.client._do(_calls.run(self.id, wish))
        except asyncio.CancelledError:
            with contextlib.suppress(DurwardError):
                await asyncio.shield(self.client._do(_calls.kill(self.id, wish)))
            raise

    async def stream(self, command: str | Sequence[str], *, cwd: str | os.PathLike[str] | None = None,
                     env: Mapping[str, str] | None = None, timeout: int | None = None,
                     stdin: bytes | str | None = None, split: bool = False,
                     max_output: int | None = None) -> AsyncIterator[ExecOutput | ExecResult]:
        """As Sandbox.stream. Leaving the loop early kills the command when the iterator is closed
        (aclose(), or contextlib.aclosing)."""
        wish = _calls.exec_body(command, cwd, env, timeout, stdin, split, max_output)
        async with contextlib.aclosing(self._pieces(_calls.stream(self.id, wish))) as pieces:
            async for piece in pieces:
                yield piece

    async def start(self, command: str | Sequence[str], *, cwd: str | os.PathLike[str] | None = None,
                    env: Mapping[str, str] | None = None, timeout: int | None = 0,
                    stdin: bytes | str | None = None, split: bool = False, tty: bool = False) -> RunningExec:
        """As Sandbox.start."""
        wish = _calls.exec_body(command, cwd, env, timeout, stdin, split, None)
        return await self.client._do(_calls.start(self.id, dict(wish, tty=True) if tty else wish))

    async def attach(self, exec_id: str) -> AsyncIterator[ExecOutput | ExecResult]:
        """As Sandbox.attach. Leaving the loop leaves the command when the iterator is closed (aclose())."""
        async with contextlib.aclosing(self._pieces(_calls.attach(self.id, exec_id))) as pieces:
            async for piece in pieces:
                yield piece

    async def _pieces(self, call: _calls.Call[bytes]) -> AsyncGenerator[ExecOutput | ExecResult, None]:
        x, held, started = _Exchange(self.client.socket), b"", ""
        try:
            await self.client._begin(x, call)
            async for piece in x.pieces():
                *lines, held = (held + piece).split(b"\n")
                for line in lines:
                    item = stream_item(line, started)
                    if isinstance(item, str):
                        started = item
                        continue
                    yield item
                    if isinstance(item, ExecResult):
                        return
            raise ended_early()
        except _BROKEN as e:
            raise unreachable(self.client.socket, as_os_error(e)) from e
        finally:
            x.close()

    async def watch(self, path: str | None = None, skip: Sequence[str] = ()) -> AsyncIterator[FileEvent]:
        """As Sandbox.watch. Leaving the loop ends it when the iterator is closed (aclose())."""
        x, held = _Exchange(self.client.socket), b""
        try:
            await self.client._begin(x, _calls.watch(self.id, path, skip))
            async for piece in x.pieces():
                *lines, held = (held + piece).split(b"\n")
                for line in lines:
                    yield file_event(line)
            raise ended_early()
        except _BROKEN as e:
            raise unreachable(self.client.socket, as_os_error(e)) from e
        finally:
            x.close()

    async def read(self, path: str) -> bytes:
        """All of a file. FileError: file_not_found, is_directory, permission_denied, too_large (over 64 MiB)."""
        return await self.client._do(_calls.read_file(self.id, path))

    async def write(self, path: str, data: bytes | str, mode: int | None = None, if_version: str | None = None) -> None:
        """64 MiB at most; parents are made. mode: of a file that is made (default 0644). if_version: only over this
        version (FileEntry.version), or, "none", where nothing is, and whole or not at all; else `changed`."""
        await self.client._do(_calls.write_file(self.id, path, data, mode, if_version))

    async def remove(self, path: str, recursive: bool = False, if_version: str | None = None) -> None:
        """A file, or an empty directory; recursive: with all below it. if_version: only this version (FileEntry.version),
        not with recursive. FileError: file_not_found, not_empty, `changed`."""
        await self.client._do(_calls.delete_file(self.id, path, recursive, if_version))

    async def stat(self, path: str) -> FileEntry:
        """What is at this path; a link itself, not what it leads to."""
        return await self.client._do(_calls.stat_file(self.id, path))

    async def list_files(self, path: str) -> list[FileEntry]:
        """At most 16384 entries. FileError: file_not_found, not_directory."""
        return (await self.client._do(_calls.list_files(self.id, path)))[0]

    async def upload(self, files: Iterable[tuple[str, bytes | str]]) -> list[FileResult]:
        """One result for each file, in order; what goes wrong with one is in its result. Parents are made."""
        return [await _one(self.write(path, data), path) for path, data in files]

    async def download(self, paths: Iterable[str]) -> list[FileResult]:
        """One result for each path, in order: its bytes, or what went wrong."""
        return [await _one(self.read(path), path) for path in paths]

    async def batch(self, operations: Iterable[Mapping[str, Any]]) -> list[FileResult]:
        """Small operations in one request, each with a result of its own: {"op": "read", "path"}, {"op": "write", "path",
        "data", "encoding"}, {"op": "delete", "path", "recursive"}, as the API's document has them."""
        return await self.client._do(_calls.batch(self.id, operations))

    async def read_tar(self, path: str) -> bytes:
        """A directory as a tar archive (64 MiB at most), by the tar in the sandbox."""
        return await self.client._do(_calls.read_tar(self.id, path))

    async def write_tar(self, path: str, data: bytes) -> None:
        """Unpack an archive below a directory, which is made, by the tar in the sandbox."""
        await self.client._do(_calls.write_tar(self.id, path, data))


async def _received(reader: asyncio.StreamReader) -> bytes:
    data = await reader.read(CHUNK)
    if not data:
        raise ConnectionError("the daemon ended the transfer")
    return data


async def _sent(writer: asyncio.StreamWriter, piece: bytes, answer: asyncio.Future[Frames]) -> bool:
    """False: the daemon has said its last word already, or does not listen any more (then it may have)."""
    if answer.done():
        return False
    try:
        writer.write(frame(piece))
        await writer.drain()
    except ConnectionError:
        return False
    return True


async def _last_word(reader: asyncio.StreamReader) -> Frames:
    frames = Frames()
    while frames.last is None:
        for _ in frames.feed(await _received(reader)):
            pass
    return frames


async def _pieces(archive: Source | AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    if not isinstance(archive, AsyncIterable):
        for piece in pieces(archive):
            yield piece
        return
    async for whole in archive:
        for piece in pieces([whole]):
            yield piece


async def _one(operation: Any, path: str) -> FileResult:
    try:
        return FileResult(path, await operation)
    except (FileError, BadRequest) as e:
        return FileResult(path, None, as_file_error(e))


def as_os_error(e: BaseException) -> OSError:
    return TimeoutError() if isinstance(e, asyncio.TimeoutError) else as_connection_error(e)
