"""The client that waits. Safe to use from several threads: each call has a connection of its own."""
from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import ssl
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from socket import socket as Socket
from types import TracebackType
from typing import Any, TypeVar

from . import _calls
from ._address import Connection, socket_path
from ._calls import Call, Publish
from ._frames import CHUNK, Frames, Source, frame, pieces
from ._http import HEAD_MAX, answer
from .errors import BadRequest, Conflict, DurwardError, FileError, refusal, unreachable
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


class Durward:
    """A daemon: its socket's path, or https://HOST[:PORT] with a token and the file of its CA. Without:
    $DURWARD_URL (with DURWARD_TOKEN_FILE or DURWARD_TOKEN, and DURWARD_CA), $DURWARD_SOCKET, else this
    user's daemon. Nothing is opened before the first call.

    retries: how often more a call is tried that no answer came to (the daemon is being started anew), or 503, after 0.1,
    0.4, 1.6 seconds and so on: what only reads, deletes a sandbox, volume or snapshot, writes a whole file, or gets or
    creates. Others, commands among them, are sent once.

    timeout: seconds until an answer must begin, else Unavailable (`timeout`), which is not tried again. Commands have a
    timeout of their own; what takes long by itself (archives, approvals, verifying the log) has as long as it takes."""

    def __init__(self, socket: str | os.PathLike[str] | None = None, *, token: str | None = None,
                 ca: str | os.PathLike[str] | None = None, retries: int = 2, timeout: float = 60) -> None:
        self.socket = socket_path(socket, token, ca)
        self.pauses = _calls.pauses(retries)
        self.timeout = timeout

    def __repr__(self) -> str:
        return "Durward(%r)" % self.socket

    def _open(self, call: Call[Any]) -> tuple[Connection, http.client.HTTPResponse]:
        conn = Connection(self.socket, call.seconds(self.timeout))
        try:
            conn.request(call.method, call.target, call.body, self.socket.headers)
            answer = conn.getresponse()
            if answer.status // 100 != 2:
                raise refusal(answer.status, answer.read(), call.of_file)
            return conn, answer
        except (OSError, http.client.HTTPException) as e:
            conn.close()
            raise unreachable(self.socket, as_connection_error(e)) from e
        except BaseException:
            conn.close()
            raise

    def _do(self, call: Call[T]) -> T:
        for pause in self.pauses:
            try:
                return self._once(call)
            except DurwardError as e:
                if not _calls.worth_another(call, e):
                    raise
                time.sleep(pause)
        return self._once(call)

    def _once(self, call: Call[T]) -> T:
        conn, answer = self._open(call)
        try:
            body = answer.read()
        except (OSError, http.client.HTTPException) as e:
            raise unreachable(self.socket, as_connection_error(e)) from e
        finally:
            conn.close()
        return call.read(body)

    def _upgrade(self, wanted: tuple[str, str]) -> Socket:
        """A connection that the daemon hands over (101)."""
        conn = Connection(self.socket, self.timeout)
        try:
            conn.connect()
        except OSError as e:
            raise unreachable(self.socket, e) from e
        s = conn.sock
        try:
            s.sendall(_calls.upgrade(wanted, self.socket.headers))
            head = b""
            while not head.endswith(b"\r\n\r\n"):  # byte by byte: what follows is not ours
                byte = s.recv(1)
                if not byte or len(head) > HEAD_MAX:
                    raise ConnectionError("the answer was cut")
                head += byte
            given, body = answer(head, "POST"), b""
            if given.status != 101:
                while len(body) < (given.length or 0):
                    more = s.recv((given.length or 0) - len(body))
                    if not more:
                        break
                    body += more
                raise refusal(given.status, body, False)
            s.settimeout(None)
            return s
        except (OSError, http.client.HTTPException) as e:
            s.close()
            raise unreachable(self.socket, as_connection_error(e)) from e
        except BaseException:
            s.close()
            raise

    # ---- the daemon ----

    def version(self) -> str:
        """Of the daemon; Unavailable when there is none."""
        return self._do(_calls.health())

    def status(self) -> dict[str, Any]:
        """Roles, listeners and sandboxes, as the API's document has them."""
        return self._do(_calls.status())

    def fleet(self) -> Fleet:
        """All hosts of the fleet, as this one knows them. `host` None: its configuration has none."""
        return self._do(_calls.fleet())

    def reload(self) -> None:
        """Read the configuration again; BadRequest with what is wrong in it, and nothing is changed."""
        self._do(_calls.reload())

    def metrics(self) -> str:
        """In Prometheus' text format."""
        return self._do(_calls.metrics())

    def console_url(self) -> str:
        """A link that logs into the console, once."""
        return self._do(_calls.console())

    def policies(self) -> list[str]:
        """Names of the configuration's policies that this caller sees."""
        return self._do(_calls.policies())

    def policy(self, name: str | None = None) -> dict[str, Any]:
        """Its rules with presets expanded; secrets are names."""
        return self._do(_calls.policy(name))

    def explain(self, method: str, url: str, policy: str | None = None, *, text: str | None = None) -> Explanation:
        """What a policy would say to a request; nothing is sent. text: of ssh:// the command, the target or the file (HOST:PORT,
        a path), of smtp:// recipients, of imap:// a folder, as durward(1) says of `explain`."""
        return self._do(_calls.explain(method, url, policy, text))

    def events(self, after: int = 0, limit: int = 100) -> list[Event]:
        """What happened to sandboxes, after this sequence number: of the last 1000 since the daemon's controller
        started, `limit` at most (1 to 1000)."""
        return self._do(_calls.events(after, limit))

    def query_log(self, **conditions: str | int) -> list[dict[str, Any]]:
        """Records of the audit log, oldest first: since, until, kind, sandbox, policy, host, method, rule,
        credential, status, code, id, text; the newest `limit` (1 to 5000, default 1000) of them."""
        return (self._do(_calls.query_log(conditions)))[0]

    def export_case(self, **conditions: str | int) -> bytes:
        """The same records with the proofs that they stand in the log: a file for `durward audit verify --case`."""
        return self._do(_calls.export_case(conditions))

    def codes(self) -> dict[str, Any]:
        """What codes of records mean, and how bad they are."""
        return self._do(_calls.codes())

    def verify_log(self) -> dict[str, Any]:
        """The whole audit log, read anew: `ok`, `records`, `files`, and where it breaks, `problem`. Takes as long as
        that takes, 300 seconds at most."""
        return self._do(_calls.verify_log())

    def audit(self) -> Iterator[dict[str, Any]]:
        """Records of the audit log, those that were just written first, without an end."""
        conn, answer = self._open(_calls.audit())
        try:
            for line in answer:
                record = audit_record(line)
                if record is not None:
                    yield record
        except (OSError, http.client.HTTPException) as e:
            raise unreachable(self.socket, as_connection_error(e)) from e
        finally:
            conn.close()

    # ---- requests that an `ask` rule holds ----

    def approvals(self, after: int = 0, wait: int = 0) -> list[Approval]:
        """Those that wait. after: only later ones (`sequence`). wait: seconds to wait for one, 60 at most."""
        return self._do(_calls.approvals(after, wait))[0]

    def approval(self, approval_id: str) -> Approval:
        """One that waits; NotFound when it was decided or ended."""
        return self._do(_calls.approval(approval_id))

    def allow(self, approval_id: str) -> Decision:
        """The audit log names who said so. NotFound when somebody was faster, or it ended. Of another host's (`host`):
        Conflict when it was answered otherwise; `taken` False when that host has not taken the answer yet."""
        return self._do(_calls.decide(approval_id, True))

    def deny(self, approval_id: str) -> Decision:
        """Its client is answered 403. NotFound when somebody was faster, or it ended. Of another host's (`host`):
        Conflict when it was answered otherwise; `taken` False when that host has not taken the answer yet."""
        return self._do(_calls.decide(approval_id, False))

    # ---- what was proposed to be allowed ----

    def proposals(self) -> list[dict[str, Any]]:
        """Oldest first. A sandbox's `reason` is its own words, which may say anything."""
        return self._do(_calls.proposals())

    def proposal(self, proposal_id: str) -> dict[str, Any]:
        """With the rule it would become (`diff`), and what that changes (`before`, `after`)."""
        return self._do(_calls.proposal(proposal_id))

    def propose(self, method: str, url: str, *, policy: str | None = None,
                sandbox: str | None = None, reason: str | None = None) -> dict[str, Any]:
        """Nothing is allowed by it. The url's path may hold `*` and `**`."""
        return self._do(_calls.propose(method, url, policy, sandbox, reason))

    def accept_proposal(self, proposal_id: str) -> dict[str, Any]:
        """Changes no policy: whoever may write the configuration puts the rule there."""
        return self._do(_calls.decide_proposal(proposal_id, True))

    def reject_proposal(self, proposal_id: str) -> dict[str, Any]:
        """Conflict when it was accepted."""
        return self._do(_calls.decide_proposal(proposal_id, False))

    # ---- findings that were looked at ----

    def suppressions(self) -> list[dict[str, Any]]:
        """Oldest first, those that ended for a while."""
        return self._do(_calls.suppressions())

    def suppression(self, suppression_id: str) -> dict[str, Any]:
        """One of them; NotFound when there is none."""
        return self._do(_calls.suppression(suppression_id))

    def suppress(self, code: str, host: str, reason: str, expires_in: int, *, policy: str | None = None,
                 method: str | None = None, path: str | None = None,
                 sandbox: str | None = None) -> dict[str, Any]:
        """Hides nothing before it is accepted; then notices leave such findings out until it ends, `expires_in` seconds
        from now."""
        return self._do(_calls.suppress(code, host, reason, expires_in, policy, method, path, sandbox))

    def accept_suppression(self, suppression_id: str) -> dict[str, Any]:
        """Not by the token that wrote it."""
        return self._do(_calls.accept_suppression(suppression_id))

    def lift_suppression(self, suppression_id: str) -> dict[str, Any]:
        """It ends now; one that is open is withdrawn."""
        return self._do(_calls.lift_suppression(suppression_id))

    # ---- snapshots ----

    def snapshots(self) -> list[Snapshot]:
        """Oldest first."""
        return self._do(_calls.snapshots())

    def snapshot(self, name: str) -> Snapshot:
        """NotFound when there is none of this name."""
        return self._do(_calls.show_snapshot(name))

    def delete_snapshot(self, name: str) -> None:
        """Idempotent. Sandboxes made of it stay."""
        self._do(_calls.delete_snapshot(name))

    def export_snapshot(self, name: str) -> Iterator[bytes]:
        """A snapshot as a tar archive of any size, piece by piece. It is whole when the iterator ended
        without an exception."""
        frames = Frames()
        with self._upgrade(_calls.archive(name, "export")) as s:
            try:
                while frames.last is None:
                    yield from frames.feed(_received(s))
                frames.snapshot()
            except OSError as e:
                raise unreachable(self.socket, e) from e

    def import_snapshot(self, name: str, archive: Source) -> Snapshot:
        """A snapshot from such an archive, an open file or its pieces: whole, or not at all. Conflict where
        there is one of this name; its image must be known there."""
        frames = Frames()
        with self._upgrade(_calls.archive(name, "import")) as s:
            for piece in pieces(archive):
                if not _sent(s, frame(piece), frames):
                    break
            else:
                _sent(s, frame(b""), frames)
            try:
                while frames.last is None:
                    deque(frames.feed(_received(s)), 0)
                return frames.snapshot()
            except OSError as e:
                raise unreachable(self.socket, e) from e

    # ---- templates ----

    def templates(self) -> list[Template]:
        """What create(template=NAME) takes, and how many are ready."""
        return self._do(_calls.templates())

    def template(self, name: str) -> Template:
        """NotFound when there is none that this token sees."""
        return self._do(_calls.template(name))

    # ---- volumes ----

    def create_volume(self, name: str, policy: str | None = None, *, size: int | None = None,
                      access: str | None = None, labels: Mapping[str, str] | None = None,
                      clone_of: str | None = None, get_or_create: bool = False) -> Volume:
        """Files that outlive the sandboxes of this policy which mount them: create(volumes=["NAME:/path"]).
        size: bytes (1 MiB to 1 PiB, default 1 GiB). access: "one" sandbox at a time may write (default), or "many". clone_of:
        begin with the files of this volume or snapshot. Conflict where there is one of this name, unless get_or_create."""
        return self._do(_calls.create_volume(get_or_create, name=name, policy=policy, size=size, access=access,
                                             labels=plain(labels), **{"from": clone_of}))

    def volumes(self) -> list[Volume]:
        """With snapshots of volumes; oldest first."""
        return self._do(_calls.volumes())

    def volume(self, name: str) -> Volume:
        """With what of it is used, in bytes; NotFound when there is none of this name."""
        return self._do(_calls.volume(name))

    def delete_volume(self, name: str) -> None:
        """Idempotent. Conflict (`volume_in_use`) while a sandbox has it."""
        self._do(_calls.delete_volume(name))

    def snapshot_volume(self, name: str, snapshot: str) -> Volume:
        """A copy of its files, each as it is just then, as the volume `snapshot`, which nobody mounts."""
        return self._do(_calls.snapshot_volume(name, snapshot))

    def restore_volume(self, name: str, snapshot: str) -> Volume:
        """A snapshot's files in place of its own. Conflict while a sandbox that runs has it."""
        return self._do(_calls.restore_volume(name, snapshot))

    def export_volume(self, name: str) -> Iterator[bytes]:
        """As a tar archive of any size, its files below root/: whole when the iterator ended without an
        exception."""
        frames = Frames()
        with self._upgrade(_calls.export_volume(name)) as s:
            try:
                while frames.last is None:
                    yield from frames.feed(_received(s))
                frames.volume()
            except OSError as e:
                raise unreachable(self.socket, e) from e

    # ---- identities of remote sandboxes ----

    def issue_identity(self, policy: str | None = None, ttl: int | None = None,
                       remote: bool = False) -> Identity:
        """A token for a sandbox that is not this daemon's. ttl: seconds, 1 to 3600 (default 3600). remote: it is on
        another host, so that the listener is one that can be reached from there, in TLS if there is one."""
        return self._do(_calls.issue(policy, ttl, remote))

    def revoke_identity(self, identity: str) -> None:
        """NotFound when it is unknown or revoked."""
        self._do(_calls.revoke(identity))

    # ---- sandboxes ----

    def create(self, policy: str | None = None, *, name: str | None = None,
               labels: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None,
               ttl: int | None = None, idle_ttl: int | None = None, image: str | None = None,
               snapshot: str | None = None, backend: str | None = None, on_idle: str | None = None,
               soft_ttl: int | None = None, on_soft_ttl: str | None = None,
               auto_resume: bool | None = None, publish: Sequence[Publish] = (),
               volumes: Sequence[str] = (), template: str | None = None) -> Sandbox:
        """A sandbox that runs. policy may be left out where there is one only. ttl: seconds to its
        end whatever it does (default a day); idle_ttl: without a command (default an hour; 0 never), after
        which it is deleted, or on_idle: "pause", "stop"; soft_ttl: that it runs at a stretch, whatever it does
        (default: for ever), before on_soft_ttl: "stop" (default), "pause". image, backend: its root, and what makes it, if
        not as the policy says. snapshot: begin with its files. auto_resume (default): a command resumes it.
        publish: ports inside, or (port, "ADDRESS:PORT") pairs, reached at addresses of the daemon's host for as
        long as the sandbox is there: info.published has them. volumes: "NAME:/path" or "NAME:/path:ro", of its
        policy. template: one of the configuration's, out of its pool if that has one; then neither image, backend,
        snapshot nor volumes."""
        return Sandbox(self, self._do(_calls.create(
            False, publish, volumes, policy=policy, name=name, labels=plain(labels), env=plain(env), ttl=ttl, idle_ttl=idle_ttl,
            image=image, snapshot=snapshot, backend=backend, on_idle=on_idle, soft_ttl=soft_ttl,
            on_soft_ttl=on_soft_ttl, auto_resume=auto_resume, template=template)))

    def get_or_create(self, labels: Mapping[str, str], policy: str | None = None, *,
                      name: str | None = None, env: Mapping[str, str] | None = None,
                      ttl: int | None = None, idle_ttl: int | None = None, image: str | None = None,
                      snapshot: str | None = None, backend: str | None = None, on_idle: str | None = None,
                      soft_ttl: int | None = None, on_soft_ttl: str | None = None,
                      auto_resume: bool | None = None, publish: Sequence[Publish] = (),
                      volumes: Sequence[str] = (), template: str | None = None) -> Sandbox:
        """The sandbox that has all these labels, resumed if it sleeps, else a new one; atomic."""
        return Sandbox(self, self._do(_calls.create(
            True, publish, volumes, policy=policy, name=name, labels=plain(labels), env=plain(env), ttl=ttl, idle_ttl=idle_ttl,
            image=image, snapshot=snapshot, backend=backend, on_idle=on_idle, soft_ttl=soft_ttl,
            on_soft_ttl=on_soft_ttl, auto_resume=auto_resume, template=template)))

    def sandboxes(self, labels: Mapping[str, str] | None = None, state: str | None = None, *,
                  page_size: int = 100) -> Iterator[SandboxInfo]:
        """Oldest first, page by page. labels: only those that have all of them. state: only those that are creating,
        running, paused, resuming, stopped or stopping. page_size: how many are asked for at a time (1 to 1000)."""
        after: str | None = None
        while True:
            rows, after = self._do(_calls.page(labels, state, after, page_size))
            yield from rows
            if after is None:
                return

    def get(self, sandbox_id: str) -> Sandbox:
        """NotFound when there is none."""
        return Sandbox(self, self._do(_calls.show(sandbox_id)))

    def delete(self, sandbox_id: str) -> None:
        """Idempotent; answers when nothing of it is left."""
        self._do(_calls.delete(sandbox_id))


class Sandbox:
    """One sandbox. With `with`, it is deleted at the end."""

    def __init__(self, client: Durward, info: SandboxInfo) -> None:
        self.client = client
        self.info = info

    @property
    def id(self) -> str:
        """What it is found by: get(id)."""
        return self.info.id

    def __repr__(self) -> str:
        return "Sandbox(%r, policy=%r)" % (self.id, self.info.policy)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.delete()

    def refresh(self) -> SandboxInfo:
        """Asks again; .info is the answer."""
        self.info = self.client._do(_calls.show(self.id))
        return self.info

    def update(self, *, labels: Mapping[str, str] | None = None, ttl: int | None = None,
               idle_ttl: int | None = None, soft_ttl: int | None = None) -> SandboxInfo:
        """Other labels (all of them anew), other times in seconds; ttl (1 to 2592000) and soft_ttl (0: never) count
        from now, idle_ttl 0 is never."""
        self.info = self.client._do(_calls.update(self.id, labels, ttl, idle_ttl, soft_ttl))
        return self.info

    def delete(self) -> None:
        """End it and forget it, with its files. Idempotent; answers when nothing of it is left."""
        self.client._do(_calls.delete(self.id))

    # ---- sleep ----

    def pause(self) -> SandboxInfo:
        """Freeze its processes; Unsupported where the host cannot."""
        self.info = self.client._do(_calls.pause(self.id))
        return self.info

    def stop(self) -> SandboxInfo:
        """End its processes; its files stay where info.kept says so."""
        self.info = self.client._do(_calls.stop(self.id))
        return self.info

    def resume(self) -> SandboxInfo:
        """It runs when this returns; a stopped one starts anew above its files."""
        self.info = self.client._do(_calls.resume(self.id))
        return self.info

    # ---- copies ----

    def fork(self, *, name: str | None = None, labels: Mapping[str, str] | None = None,
             env: Mapping[str, str] | None = None, ttl: int | None = None, idle_ttl: int | None = None,
             on_idle: str | None = None, soft_ttl: int | None = None, on_soft_ttl: str | None = None,
             auto_resume: bool | None = None) -> Sandbox:
        """Another sandbox with a copy of this one's files, and placeholders of its own."""
        return Sandbox(self.client, self.client._do(_calls.fork(
            self.id, name=name, labels=plain(labels), env=plain(env), ttl=ttl, idle_ttl=idle_ttl,
            on_idle=on_idle, soft_ttl=soft_ttl, on_soft_ttl=on_soft_ttl, auto_resume=auto_resume)))

    def snapshot(self, name: str, *, get_or_create: bool = False) -> Snapshot:
        """Keep a copy of its files. get_or_create: one of this name that is there, whosever."""
        return self.client._do(_calls.snapshot(self.id, name, get_or_create))

    def restore(self, snapshot: str) -> SandboxInfo:
        """A snapshot's files in place of its own. What runs in it is ended."""
        self.info = self.client._do(_calls.restore(self.id, snapshot))
        return self.info

    # ---- commands ----

    def execs(self) -> list[RunningExec]:
        """Commands that run now."""
        return self.client._do(_calls.execs(self.id))

    def cancel(self, exec_id: str) -> None:
        """Kill a command and its process group, or forget a kept one that has ended. Idempotent."""
        self.client._do(_calls.cancel(self.id, exec_id))

    def forward(self, port: int) -> Socket:
        """A connection to a TCP port (1 to 65535) of its own loopback. Yours to close. Unavailable (`not_listening`) when
        nothing listens there."""
        return self.client._upgrade(_calls.forward(self.id, port))

    def services(self) -> list[Service]:
        """What its policy names, each looked at now. Of a sandbox that sleeps nothing is asked."""
        return self.client._do(_calls.services(self.id))

    def preview(self, service: str | int, *, ttl: int | None = None) -> Preview:
        """A link by which a browser sees a service, or a port, and a token for programs. ttl: seconds that who opened it
        may look (default 8 hours). NotFound where previews are not on."""
        return self.client._do(_calls.preview(self.id, service, ttl))

    def revoke_previews(self, service: str | int | None = None) -> None:
        """End what preview() gave out for a service, or for all: links, tokens, cookies, and connections that are open."""
        self.client._do(_calls.revoke_previews(self.id, service))

    def exec(self, command: str | Sequence[str], *, cwd: str | os.PathLike[str] | None = None,
             env: Mapping[str, str] | None = None, timeout: int | None = None,
             stdin: bytes | str | None = None, split: bool = False,
             max_output: int | None = None) -> ExecResult:
        """Run a command to its end: a string by /bin/sh -c, a list as it is. timeout: seconds, then
        it is killed and the exit code is 124 (default 1800; 0: none). max_output: bytes kept (default
        8 MiB); `truncated` says that there was more. split: standard error apart, in `stderr`; else all
        is in `output`. Interrupted, it kills the command."""
        wish = _calls.exec_body(command, cwd, env, timeout, stdin, split, max_output)
        try:
            return self.client._do(_calls.run(self.id, wish))
        except KeyboardInterrupt:
            with contextlib.suppress(DurwardError):
                self.client._do(_calls.kill(self.id, wish))
            raise

    def stream(self, command: str | Sequence[str], *, cwd: str | os.PathLike[str] | None = None,
               env: Mapping[str, str] | None = None, timeout: int | None = None,
               stdin: bytes | str | None = None, split: bool = False,
               max_output: int | None = None) -> Iterator[ExecOutput | ExecResult]:
        """Pieces of output as they come; the ExecResult, without output, is the last. Closing the
        iterator kills the command."""
        wish = _calls.exec_body(command, cwd, env, timeout, stdin, split, max_output)
        return self._pieces(_calls.stream(self.id, wish))

    def start(self, command: str | Sequence[str], *, cwd: str | os.PathLike[str] | None = None,
              env: Mapping[str, str] | None = None, timeout: int | None = 0,
              stdin: bytes | str | None = None, split: bool = False, tty: bool = False) -> RunningExec:
        """Start a command that outlives this client (but not the daemon); `attach` comes to it, `cancel` ends it.
        At most 16 of them in a sandbox."""
        wish = _calls.exec_body(command, cwd, env, timeout, stdin, split, None)
        return self.client._do(_calls.start(self.id, dict(wish, tty=True) if tty else wish))

    def attach(self, exec_id: str) -> Iterator[ExecOutput | ExecResult]:
        """What a command that `start` started wrote last (at most 256 KiB), what it writes, and as the last its
        ExecResult. Closing the iterator leaves the command. Conflict where another client attaches meanwhile."""
        return self._pieces(_calls.attach(self.id, exec_id))

    def _pieces(self, call: _calls.Call[bytes]) -> Iterator[ExecOutput | ExecResult]:
        conn, answer = self.client._open(call)
        started = ""
        try:
            for line in answer:
                item = stream_item(line, started)
                if isinstance(item, str):
                    started = item
                    continue
                yield item
                if isinstance(item, ExecResult):
                    return
            raise ended_early()
        except (OSError, http.client.HTTPException) as e:
            raise unreachable(self.client.socket, as_connection_error(e)) from e
        finally:
            conn.close()

    # ---- files ----

    def watch(self, path: str | None = None, skip: Sequence[str] = ()) -> Iterator[FileEvent]:
        """What happens below a directory (default: the workdir), at any depth; `ready` comes first. skip: names of
        files and directories that are not looked at, such as node_modules. Ends with a FileError when the directory
        is gone, a DurwardError when the sandbox is stopped. Closing the iterator ends it."""
        conn, answer = self.client._open(_calls.watch(self.id, path, skip))
        try:
            for line in answer:
                yield file_event(line)
            raise ended_early()
        except (OSError, http.client.HTTPException) as e:
            raise unreachable(self.client.socket, as_connection_error(e)) from e
        finally:
            conn.close()

    def read(self, path: str) -> bytes:
        """All of a file. FileError: file_not_found, is_directory, permission_denied, too_large (over 64 MiB)."""
        return self.client._do(_calls.read_file(self.id, path))

    def write(self, path: str, data: bytes | str, mode: int | None = None, if_version: str | None = None) -> None:
        """64 MiB at most; parents are made. mode: of a file that is made (default 0644). if_version: only over this
        version (FileEntry.version), or, "none", where nothing is, and whole or not at all; else `changed`."""
        self.client._do(_calls.write_file(self.id, path, data, mode, if_version))

    def remove(self, path: str, recursive: bool = False, if_version: str | None = None) -> None:
        """A file, or an empty directory; recursive: with all below it. if_version: only this version (FileEntry.version),
        not with recursive. FileError: file_not_found, not_empty, `changed`."""
        self.client._do(_calls.delete_file(self.id, path, recursive, if_version))

    def stat(self, path: str) -> FileEntry:
        """What is at this path; a link itself, not what it leads to."""
        return self.client._do(_calls.stat_file(self.id, path))

    def list_files(self, path: str) -> list[FileEntry]:
        """At most 16384 entries. FileError: file_not_found, not_directory."""
        return self.client._do(_calls.list_files(self.id, path))[0]

    def upload(self, files: Iterable[tuple[str, bytes | str]]) -> list[FileResult]:
        """One result for each file, in order; what goes wrong with one is in its result. Parents are made."""
        return [_one(lambda: self.write(path, data), path) for path, data in files]

    def download(self, paths: Iterable[str]) -> list[FileResult]:
        """One result for each path, in order: its bytes, or what went wrong."""
        return [_one(lambda: self.read(path), path) for path in paths]

    def batch(self, operations: Iterable[Mapping[str, Any]]) -> list[FileResult]:
        """Small operations in one request, each with a result of its own: {"op": "read", "path"}, {"op": "write", "path",
        "data", "encoding"}, {"op": "delete", "path", "recursive"}, as the API's document has them."""
        return self.client._do(_calls.batch(self.id, operations))

    def read_tar(self, path: str) -> bytes:
        """A directory as a tar archive (64 MiB at most), by the tar in the sandbox."""
        return self.client._do(_calls.read_tar(self.id, path))

    def write_tar(self, path: str, data: bytes) -> None:
        """Unpack an archive below a directory, which is made, by the tar in the sandbox."""
        self.client._do(_calls.write_tar(self.id, path, data))


def _received(s: Socket) -> bytes:
    data = s.recv(CHUNK)
    if not data:
        raise ConnectionError("the daemon ended the transfer")
    return data


def _sent(s: Socket, data: bytes, frames: Frames) -> bool:
    """False: the daemon has said its last word already, or does not listen any more (then it may have)."""
    try:
        s.setblocking(False)
        try:
            deque(frames.feed(_received(s)), 0)
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        finally:
            s.setblocking(True)
        if frames.last is None:
            s.sendall(data)
    except OSError:
        return False
    return frames.last is None


def plain(table: Mapping[str, str] | None) -> dict[str, str] | None:
    return dict(table) if table else None


def audit_record(line: bytes) -> dict[str, Any] | None:
    """Of a line of the event stream: its data, if that is a record."""
    name, _, text = line.partition(b":")
    if name != b"data" or not text.strip():
        return None
    v = json.loads(text)
    return v if isinstance(v, dict) and "kind" in v else None


def _one(operation: Any, path: str) -> FileResult:
    try:
        return FileResult(path, operation())
    except (FileError, BadRequest) as e:
        return FileResult(path, None, as_file_error(e))


def as_file_error(e: DurwardError) -> FileError:
    return e if isinstance(e, FileError) else FileError(str(e), e.code, e.status)


def as_connection_error(e: BaseException) -> OSError:
    return e if isinstance(e, OSError) else ConnectionError("the answer was cut: %r" % e)


def stream_item(line: bytes, started: str) -> ExecOutput | ExecResult | str:
    """A line of a streamed command; the id for its first."""
    v = json.loads(line)
    if v["type"] == "started":
        return str(v["id"])
    if v["type"] == "detached":
        raise Conflict("another client has attached to the command", "detached")
    if v["type"] == "exit":
        return ExecResult(started, v["exit_code"], b"", b"", v["truncated"], v["timed_out"],
                          v["message"], v["duration_ms"])
    return ExecOutput(v["type"], base64.b64decode(v["data"]))


def file_event(line: bytes) -> FileEvent:
    """A line of a watch; its end is raised."""
    v = json.loads(line)
    if v["type"] != "end":
        return FileEvent.read(v)
    if v["code"] == "unavailable":
        raise DurwardError("the watch ended: " + v["message"], "stream_ended")
    raise FileError(v["message"], v["code"], 200)


def ended_early() -> DurwardError:
    return DurwardError("the daemon ended the stream before the command's end: it stopped, or the "
                        "sandbox was deleted", "stream_ended")
