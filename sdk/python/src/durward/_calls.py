"""Each operation of the API as a value: what to send and how to read the answer. Both clients use
these; neither knows a path of its own."""
from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, Union
from urllib.parse import quote, urlencode

from ._http import request
from .errors import DurwardError, FileError, Unavailable
from .models import (
    Approval,
    Decision,
    Event,
    ExecResult,
    Explanation,
    FileEntry,
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
BASE = "/v1/sandboxes"
Publish = Union[int, tuple[int, str]]  # a port inside, and where it is reached if not at a free loopback port
EXEC_TIMEOUT = 1800  # seconds, the API's default
FILE_MAX = 64 << 20
ANSWER_WAIT = 60.0  # seconds, of calls that wait for nothing themselves


@dataclass(frozen=True)
class Call(Generic[T]):
    method: str
    target: str
    read: Callable[[bytes], T]
    body: bytes | None = None
    wait: float | None = ANSWER_WAIT  # seconds until the answer must begin; None: for ever
    again: bool = False  # it may be sent twice, though its method does not say so

    def seconds(self, timeout: float) -> float | None:
        """Seconds that a client of this timeout waits."""
        return timeout if self.wait == ANSWER_WAIT else self.wait

    @property
    def of_file(self) -> bool:
        return "/files" in self.target or "/tar" in self.target

    @property
    def repeatable(self) -> bool:
        """Where no answer came, it may be sent again: twice does what once does, and answers the same."""
        if self.method == "PUT":
            return "if_version=" not in self.target
        return self.again or self.method == "GET"


def pauses(retries: int) -> list[float]:
    """Seconds before each further try: 0.1, 0.4, 1.6, at most 5."""
    return [min(0.1 * 4 ** n, 5.0) for n in range(retries)]


def worth_another(call: Call[Any], e: DurwardError) -> bool:
    """No answer came, or 503."""
    return call.repeatable and (isinstance(e, Unavailable) or e.status == 503) and e.code not in ("timeout", "permission")


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _given(**kw: Any) -> dict[str, Any]:
    return {k: v for k, v in kw.items() if v is not None}


def _info(b: bytes) -> SandboxInfo:
    return SandboxInfo.read(json.loads(b))


def _nothing(_: bytes) -> None:
    return None


def _bytes(b: bytes) -> bytes:
    return b


def _of(sid: str, tail: str = "", **query: str) -> str:
    q = "?" + urlencode(query, quote_via=quote, errors="surrogateescape") if query else ""
    return "%s/%s%s%s" % (BASE, quote(sid, safe=""), tail, q)


# ---- the daemon ----

def health() -> Call[str]:
    return Call("GET", "/v1/health", lambda b: str(json.loads(b)["version"]))


def policies() -> Call[list[str]]:
    return Call("GET", "/v1/policies", lambda b: [p["name"] for p in json.loads(b)["policies"]])


def events(after: int, limit: int) -> Call[list[Event]]:
    return Call("GET", "/v1/events?after=%d&limit=%d" % (after, limit),
                lambda b: [Event(**e) for e in json.loads(b)["events"]])


def _dict(b: bytes) -> dict[str, Any]:
    v = json.loads(b)
    return v if isinstance(v, dict) else {}


def status() -> Call[dict[str, Any]]:
    return Call("GET", "/v1/status", _dict)


def fleet() -> Call[Fleet]:
    return Call("GET", "/v1/fleet", lambda b: Fleet.read(json.loads(b)))


def reload() -> Call[None]:
    return Call("POST", "/v1/reload", _nothing)


def metrics() -> Call[str]:
    return Call("GET", "/metrics", lambda b: b.decode())


def policy(name: str | None) -> Call[dict[str, Any]]:
    return Call("GET", "/v1/policy" + ("?name=" + quote(name, safe="") if name is not None else ""),
                lambda b: dict(json.loads(b)["policy"]))


def explain(method: str, url: str, policy: str | None, text: str | None) -> Call[Explanation]:
    return Call("POST", "/v1/explain", lambda b: Explanation.read(json.loads(b)),
                _json(_given(method=method, url=url, policy=policy, text=text)))


def verify_log() -> Call[dict[str, Any]]:
    return Call("POST", "/v1/audit/verify", lambda b: dict(json.loads(b)), wait=300)


def query_log(conditions: dict[str, str | int]) -> Call[tuple[list[dict[str, Any]], bool]]:
    def read(b: bytes) -> tuple[list[dict[str, Any]], bool]:
        v = json.loads(b)
        return list(v["records"]), bool(v["more"])
    return Call("GET", "/v1/audit/query" + _query(conditions), read, wait=180)


def export_case(conditions: dict[str, str | int]) -> Call[bytes]:
    return Call("GET", "/v1/audit/case" + _query(conditions), _bytes, wait=180)


def _query(conditions: dict[str, str | int]) -> str:
    return "".join(("&" if i else "?") + name + "=" + quote(str(value), safe="")
                   for i, (name, value) in enumerate(conditions.items()))


def codes() -> Call[dict[str, Any]]:
    return Call("GET", "/v1/codes", lambda b: dict(json.loads(b)))


def console() -> Call[str]:
    return Call("POST", "/v1/console", lambda b: str(json.loads(b)["url"]))


def audit() -> Call[bytes]:
    return Call("GET", "/v1/audit/stream", _bytes, wait=None)


def approvals(after: int, wait: int) -> Call[tuple[list[Approval], int]]:
    def read(b: bytes) -> tuple[list[Approval], int]:
        v = json.loads(b)
        return [Approval.read(a) for a in v["approvals"]], int(v["next"])
    return Call("GET", "/v1/approvals?after=%d&wait=%d" % (after, wait), read, wait=60.0 + wait)


def approval(aid: str) -> Call[Approval]:
    return Call("GET", "/v1/approvals/" + quote(aid, safe=""), lambda b: Approval.read(json.loads(b)))


def decide(aid: str, allow: bool) -> Call[Decision]:
    return Call("POST", "/v1/approvals/%s/%s" % (quote(aid, safe=""), "allow" if allow else "deny"),
                lambda b: Decision.read(json.loads(b)))


def proposals() -> Call[list[dict[str, Any]]]:
    return Call("GET", "/v1/proposals", lambda b: list(json.loads(b)["proposals"]))


def proposal(pid: str) -> Call[dict[str, Any]]:
    return Call("GET", "/v1/proposals/" + quote(pid, safe=""), lambda b: dict(json.loads(b)))


def propose(method: str, url: str, policy: str | None, sandbox: str | None,
            reason: str | None) -> Call[dict[str, Any]]:
    return Call("POST", "/v1/proposals", lambda b: dict(json.loads(b)),
                _json(_given(method=method, url=url, policy=policy, sandbox=sandbox, reason=reason)))


def decide_proposal(pid: str, accept: bool) -> Call[dict[str, Any]]:
    return Call("POST", "/v1/proposals/%s/%s" % (quote(pid, safe=""), "accept" if accept else "reject"),
                lambda b: dict(json.loads(b)))


def suppressions() -> Call[list[dict[str, Any]]]:
    return Call("GET", "/v1/suppressions", lambda b: list(json.loads(b)["suppressions"]))


def suppression(sid: str) -> Call[dict[str, Any]]:
    return Call("GET", "/v1/suppressions/" + quote(sid, safe=""), lambda b: dict(json.loads(b)))


def suppress(code: str, host: str, reason: str, expires_in: int, policy: str | None, method: str | None,
             path: str | None, sandbox: str | None) -> Call[dict[str, Any]]:
    return Call("POST", "/v1/suppressions", lambda b: dict(json.loads(b)),
                _json(_given(code=code, host=host, reason=reason, expires_in=expires_in, policy=policy,
                             method=method, path=path, sandbox=sandbox)))


def accept_suppression(sid: str) -> Call[dict[str, Any]]:
    return Call("POST", "/v1/suppressions/%s/accept" % quote(sid, safe=""), lambda b: dict(json.loads(b)))


def lift_suppression(sid: str) -> Call[dict[str, Any]]:
    return Call("DELETE", "/v1/suppressions/" + quote(sid, safe=""), lambda b: dict(json.loads(b)))


def issue(policy: str | None, ttl: int | None, remote: bool) -> Call[Identity]:
    return Call("POST", "/v1/identities", lambda b: Identity.read(json.loads(b)),
                _json(_given(policy=policy, ttl=ttl, remote=remote or None)))


def revoke(identity: str) -> Call[None]:
    return Call("DELETE", "/v1/identities/" + quote(identity, safe=""), _nothing)


# ---- sandboxes ----

def create(reuse: bool, publish: Iterable[Publish], volumes: Iterable[str], **wish: Any) -> Call[SandboxInfo]:
    ports = [{"port": p} if isinstance(p, int) else {"port": p[0], "address": p[1]} for p in publish]
    return Call("POST", BASE, _info,
                _json(_given(**wish, publish=ports or None, volumes=list(volumes) or None, get_or_create=reuse or None)), 300, reuse)


def fork(sid: str, **wish: Any) -> Call[SandboxInfo]:
    return Call("POST", _of(sid, "/fork"), _info, _json(_given(**wish)), 300)


def restore(sid: str, snapshot: str) -> Call[SandboxInfo]:
    return Call("POST", _of(sid, "/restore"), _info, _json({"snapshot": snapshot}), 300)


def pause(sid: str) -> Call[SandboxInfo]:
    return Call("POST", _of(sid, "/pause"), _info)


def stop(sid: str) -> Call[SandboxInfo]:
    return Call("POST", _of(sid, "/stop"), _info)


def resume(sid: str) -> Call[SandboxInfo]:
    return Call("POST", _of(sid, "/resume"), _info, wait=300)


def snapshot(sid: str, name: str, reuse: bool) -> Call[Snapshot]:
    return Call("POST", "/v1/snapshots", lambda b: Snapshot.read(json.loads(b)),
                _json(_given(sandbox=sid, name=name, get_or_create=reuse or None)), 300)


def snapshots() -> Call[list[Snapshot]]:
    return Call("GET", "/v1/snapshots",
                lambda b: [Snapshot.read(s) for s in json.loads(b)["snapshots"]])


def show_snapshot(name: str) -> Call[Snapshot]:
    return Call("GET", "/v1/snapshots/" + quote(name, safe=""), lambda b: Snapshot.read(json.loads(b)))


def delete_snapshot(name: str) -> Call[None]:
    return Call("DELETE", "/v1/snapshots/" + quote(name, safe=""), _nothing, wait=300, again=True)


_VOLUMES = "/v1/volumes"


def _volume(b: bytes) -> Volume:
    return Volume.read(json.loads(b))


def _of_volume(name: str, tail: str = "") -> str:
    return "%s/%s%s" % (_VOLUMES, quote(name, safe=""), tail)


def create_volume(reuse: bool, **wish: Any) -> Call[Volume]:
    return Call("POST", _VOLUMES, _volume, _json(_given(**wish, get_or_create=reuse or None)), 300, reuse)


def templates() -> Call[list[Template]]:
    return Call("GET", "/v1/templates", lambda b: [Template.read(v) for v in json.loads(b)["templates"]])


def template(name: str) -> Call[Template]:
    return Call("GET", "/v1/templates/" + quote(name, safe=""), lambda b: Template.read(json.loads(b)))


def volumes() -> Call[list[Volume]]:
    return Call("GET", _VOLUMES, lambda b: [Volume.read(v) for v in json.loads(b)["volumes"]])


def volume(name: str) -> Call[Volume]:
    return Call("GET", _of_volume(name), _volume)


def delete_volume(name: str) -> Call[None]:
    return Call("DELETE", _of_volume(name), _nothing, wait=300, again=True)


def snapshot_volume(name: str, snapshot: str) -> Call[Volume]:
    return Call("POST", _of_volume(name, "/snapshot"), _volume, _json({"name": snapshot}), 300)


def restore_volume(name: str, snapshot: str) -> Call[Volume]:
    return Call("POST", _of_volume(name, "/restore"), _volume, _json({"snapshot": snapshot}), 300)


def export_volume(name: str) -> tuple[str, str]:
    """As archive()."""
    return _of_volume(name, "/export"), "durward-archive"


def page(labels: Mapping[str, str] | None, state: str | None,
         after: str | None, size: int) -> Call[tuple[list[SandboxInfo], str | None]]:
    query = [("label", "%s=%s" % pair) for pair in (labels or {}).items()]
    query += [(k, v) for k, v in (("state", state), ("after", after), ("limit", str(size))) if v is not None]

    def read(b: bytes) -> tuple[list[SandboxInfo], str | None]:
        v = json.loads(b)
        return [SandboxInfo.read(s) for s in v["sandboxes"]], v["next"]
    return Call("GET", BASE + ("?" + urlencode(query, quote_via=quote, errors="surrogateescape") if query else ""), read)


def show(sid: str) -> Call[SandboxInfo]:
    return Call("GET", _of(sid), _info)


def update(sid: str, labels: Mapping[str, str] | None, ttl: int | None,
           idle_ttl: int | None, soft_ttl: int | None) -> Call[SandboxInfo]:
    change = _given(labels=dict(labels) if labels is not None else None, ttl=ttl, idle_ttl=idle_ttl, soft_ttl=soft_ttl)
    return Call("PATCH", _of(sid), _info, _json(change))


def delete(sid: str) -> Call[None]:
    return Call("DELETE", _of(sid), _nothing, again=True)


# ---- commands ----

def octets(data: bytes | str) -> bytes:
    """Text is UTF-8, whatever http.client would make of it."""
    if isinstance(data, str):
        return data.encode()
    return data if isinstance(data, bytes) else bytes(memoryview(data))


def words(command: Sequence[str]) -> list[str]:
    argv = [] if isinstance(command, (bytes, bytearray, memoryview)) else list(command)
    if not argv or not all(isinstance(word, str) for word in argv):
        raise TypeError("a command is a str, which /bin/sh gets, or a list of at least one str; decode bytes first, "
                        "or give them as stdin")
    return argv


def exec_body(command: str | Sequence[str], cwd: str | os.PathLike[str] | None, env: Mapping[str, str] | None,
              timeout: int | None, stdin: bytes | str | None, split: bool,
              max_output: int | None) -> dict[str, Any]:
    wish = _given(id="sdk-" + secrets.token_hex(8), cwd=None if cwd is None else os.fspath(cwd), env=dict(env) if env else None,
                  timeout=timeout, max_output=max_output, split=split or None)
    if isinstance(command, str):
        wish["command"] = command
    else:
        wish["argv"] = words(command)
    if stdin is not None:
        wish["stdin"], wish["stdin_encoding"] = base64.b64encode(octets(stdin)).decode(), "base64"
    return wish


def exec_wait(timeout: int | None) -> float | None:
    """How long the answer may take: the command's own time, and some for the way."""
    seconds = EXEC_TIMEOUT if timeout is None else timeout
    return seconds + 60.0 if seconds else None


def run(sid: str, wish: dict[str, Any]) -> Call[ExecResult]:
    return Call("POST", _of(sid, "/exec"), lambda b: ExecResult.read(json.loads(b)),
                _json(dict(wish, encoding="base64")), exec_wait(wish.get("timeout")))


def kill(sid: str, wish: dict[str, Any]) -> Call[None]:
    return Call("DELETE", _of(sid, "/exec/" + wish["id"]), _nothing, wait=5)


def stream(sid: str, wish: dict[str, Any]) -> Call[bytes]:
    return Call("POST", _of(sid, "/exec"), _bytes, _json(dict(wish, stream=True)),
                exec_wait(wish.get("timeout")))


def watch(sid: str, path: str | None, skip: Sequence[str]) -> Call[bytes]:
    return Call("POST", _of(sid, "/files/watch"), _bytes, _json(_given(path=path, skip=list(skip) or None)), None)


def execs(sid: str) -> Call[list[RunningExec]]:
    return Call("GET", _of(sid, "/exec"), lambda b: [RunningExec.read(e) for e in json.loads(b)["execs"]])


def start(sid: str, wish: dict[str, Any]) -> Call[RunningExec]:
    return Call("POST", _of(sid, "/exec"), lambda b: RunningExec.read(json.loads(b)), _json(dict(wish, keep=True)))


def attach(sid: str, exec_id: str) -> Call[bytes]:
    return Call("POST", _of(sid, "/exec/%s/attach" % quote(exec_id, safe="")), _bytes, wait=None)


def cancel(sid: str, exec_id: str) -> Call[None]:
    return Call("DELETE", _of(sid, "/exec/" + quote(exec_id, safe="")), _nothing)


def forward(sid: str, port: int) -> tuple[str, str]:
    """Target and protocol; what comes after the answer's head is the port's."""
    return _of(sid, "/forward", port=str(port)), "durward-forward"


def services(sid: str) -> Call[list[Service]]:
    return Call("GET", _of(sid, "/services"), lambda b: [Service.read(v) for v in json.loads(b)["services"]])


def preview(sid: str, service: str | int, ttl: int | None) -> Call[Preview]:
    return Call("POST", _of(sid, "/previews"), lambda b: Preview.read(json.loads(b)),
                _json(_given(service=service, ttl=ttl)))


def revoke_previews(sid: str, service: str | int | None) -> Call[None]:
    return Call("DELETE", _of(sid, "/previews" + ("" if service is None else "/" + quote(str(service), safe=""))), _nothing)


def archive(name: str, verb: str) -> tuple[str, str]:
    """A snapshot's export or import, in frames (_frames.py)."""
    return "/v1/snapshots/%s/%s" % (quote(name, safe=""), verb), "durward-archive"


def upgrade(wanted: tuple[str, str], headers: Mapping[str, str]) -> bytes:
    """The head of a request for a connection."""
    return request("POST", wanted[0], None, {**headers, "Connection": "Upgrade", "Upgrade": wanted[1]})


# ---- files ----

def read_file(sid: str, path: str) -> Call[bytes]:
    return Call("GET", _of(sid, "/files", path=path), _bytes)


def write_file(sid: str, path: str, data: bytes | str, mode: int | None, if_version: str | None = None) -> Call[None]:
    data = octets(data)
    if len(data) > FILE_MAX:  # the daemon would end the connection in the middle of it
        raise FileError("%s: %d bytes; a file may have %d: use smaller pieces"
                        % (path, len(data), FILE_MAX), "too_large")
    more = {} if mode is None else {"mode": "%04o" % mode}
    if if_version is not None:
        more["if_version"] = if_version
    return Call("PUT", _of(sid, "/files", path=path, **more), _nothing, data)


def delete_file(sid: str, path: str, recursive: bool, if_version: str | None = None) -> Call[None]:
    more = {} if if_version is None else {"if_version": if_version}
    return Call("DELETE", _of(sid, "/files", path=path, recursive="true" if recursive else "false", **more),
                _nothing)


def stat_file(sid: str, path: str) -> Call[FileEntry]:
    return Call("GET", _of(sid, "/files/stat", path=path), lambda b: FileEntry.read(json.loads(b)))


def list_files(sid: str, path: str) -> Call[tuple[list[FileEntry], bool]]:
    def read(b: bytes) -> tuple[list[FileEntry], bool]:
        v = json.loads(b)
        return [FileEntry.read(e) for e in v["entries"]], v["truncated"]
    return Call("GET", _of(sid, "/files/list", path=path), read)


def batch(sid: str, operations: Iterable[Mapping[str, Any]]) -> Call[list[FileResult]]:
    return Call("POST", _of(sid, "/files/batch"),
                lambda b: [FileResult.read(r) for r in json.loads(b)["results"]],
                _json({"operations": list(operations)}))


def read_tar(sid: str, path: str) -> Call[bytes]:
    return Call("GET", _of(sid, "/tar", path=path), _bytes, wait=300)


def write_tar(sid: str, path: str, data: bytes) -> Call[None]:
    return Call("PUT", _of(sid, "/tar", path=path), _nothing, data, wait=300)
