"""What the API answers, as values."""
from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import FileError


@dataclass(frozen=True)
class Denial:
    """What a sandbox tried and was refused."""
    code: str
    target: str
    count: int


@dataclass(frozen=True)
class Published:
    """A port inside, and the ADDRESS:PORT at which it is reached from outside."""
    port: int
    address: str


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox as it was when it was asked about. Times are seconds since 1970."""
    id: str
    name: str | None
    policy: str
    state: str
    reason: str
    generation: int
    labels: Mapping[str, str]
    workdir: str
    created_at: int
    expires_at: int
    ttl: int
    idle_ttl: int
    idle_expires_at: int | None
    soft_ttl: int  # 0: never
    soft_expires_at: int | None
    on_soft_ttl: str  # stop or pause
    backend: str
    image: str
    kept: bool  # its files outlive its processes: stop and resume keep them
    on_idle: str  # delete, pause or stop
    auto_resume: bool  # a command or a file operation resumes it
    parent: str | None  # that it was forked from
    snapshot: str | None  # that its files were last taken from
    template: str | None  # that it was made by
    denied: tuple[Denial, ...]
    published: tuple[Published, ...]  # its ports that are reached at addresses of the daemon's host
    volumes: tuple[str, ...]  # NAME:/path[:ro], as they were asked for; those of its policy come besides

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> SandboxInfo:
        known = {k: v[k] for k in cls.__dataclass_fields__ if k not in ("denied", "published", "volumes")}
        return cls(**known, denied=tuple(Denial(d["code"], d["target"], d["count"]) for d in v["denied"]),
                   published=tuple(Published(p["port"], p["address"]) for p in v["published"]),
                   volumes=tuple(v["volumes"]))


@dataclass(frozen=True)
class ExecResult:
    """A command that ended. Exit codes: its own; 124 timed out; 125 Durward failed; 126 not
    executable; 127 not found; 128+n signal n."""
    id: str
    exit_code: int
    output: bytes  # standard output and error as they came; with split: standard output alone
    stderr: bytes  # with split only
    truncated: bool
    timed_out: bool
    message: str  # why it did not run, else empty
    duration_ms: int

    @property
    def text(self) -> str:
        """The output as text; what is no UTF-8 is replaced."""
        return self.output.decode("utf-8", "replace")

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> ExecResult:
        out = v["stdout"] if "stdout" in v else v["output"]
        return cls(v["id"], v["exit_code"], _bytes(out, v["encoding"]),
                   _bytes(v.get("stderr", ""), v["encoding"]), v["truncated"], v["timed_out"],
                   v["message"], v["duration_ms"])


@dataclass(frozen=True)
class ExecOutput:
    """A piece of a streamed command's output. `stream` is stdout or stderr."""
    stream: str
    data: bytes


@dataclass(frozen=True)
class FileEvent:
    """What happened below a watched directory. type: ready (from here on nothing is missed), created, modified,
    attributes, deleted, or overflow: list anew. A move is a deletion and a creation; a directory that is deleted goes
    with all below it. An event may come twice."""
    type: str
    path: str  # below the watched directory; what is no UTF-8 in it is escaped as os.fsdecode does
    directory: bool
    reason: str  # of an overflow: "events" were lost, or there are more "directories" than are watched

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> FileEvent:
        path = str(v.get("path", ""))
        if v.get("encoding") == "base64":
            path = base64.b64decode(path).decode("utf-8", "surrogateescape")
        return cls(v["type"], path, v.get("directory", False), v.get("reason", ""))


@dataclass(frozen=True)
class FileEntry:
    """What is at a path. size: bytes. modified_at: seconds since 1970."""
    name: str  # what is no UTF-8 in it is escaped as os.fsdecode does
    type: str  # file, directory, symlink, other
    size: int
    mode: int
    modified_at: int
    version: str | None = None  # for if_version; None while it has just changed: ask again

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> FileEntry:
        name = v["name"] if v["encoding"] == "utf-8" else \
            base64.b64decode(v["name"]).decode("utf-8", "surrogateescape")
        return cls(name, v["type"], v["size"], int(v["mode"], 8), v["modified_at"], v.get("version"))


@dataclass(frozen=True)
class FileResult:
    """One operation of a batch: `data` of a read, or `error`."""
    path: str
    data: bytes | None = None
    error: FileError | None = None

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> FileResult:
        e = v["error"]
        if e is not None:
            return cls(v["path"], None, FileError("%s: %s" % (v["path"], e["message"]), e["code"]))
        data = _bytes(v["data"], v.get("encoding", "utf-8")) if "data" in v else None
        return cls(v["path"], data)


@dataclass(frozen=True)
class Snapshot:
    """A copy of a sandbox's files, by name."""
    name: str
    state: str  # making, ready, removing
    sandbox: str
    policy: str
    image: str
    created_at: int

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> Snapshot:
        return cls(**{k: v[k] for k in cls.__dataclass_fields__})


@dataclass(frozen=True)
class VolumeMount:
    """A sandbox that has a volume, and where."""
    sandbox: str
    path: str
    read_only: bool


@dataclass(frozen=True)
class Template:
    """A kind of sandboxes that the daemon's configuration names, and its pool."""
    name: str
    policy: str
    image: str
    snapshot: str | None  # that its sandboxes begin with
    warm_up: bool  # a command runs inside before anybody has the sandbox
    labels: Mapping[str, str]
    ports: tuple[int, ...]  # inside; reached at free ports of the daemon's host
    volumes: tuple[str, ...]
    ttl: int
    idle_ttl: int
    on_idle: str
    soft_ttl: int
    on_soft_ttl: str
    pool: int  # how many are kept ready
    ready: int  # how many can be had at once
    making: int
    claimed: int | None  # out of the pool; None of this and the following: this token is not told
    missed: int | None  # made when they were asked for
    failures: int | None  # in a row
    retry_in: int | None  # seconds
    reason: str | None  # of the last failure

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> Template:
        known: dict[str, Any] = {k: v.get(k) for k in cls.__dataclass_fields__ if k not in ("ports", "volumes")}
        return cls(**known, ports=tuple(v["ports"]), volumes=tuple(v["volumes"]))


@dataclass(frozen=True)
class Service:
    """A program of the sandbox that the policy names. state: healthy, unhealthy, closed, asleep, as it was looked at."""
    name: str
    port: int  # inside
    health: str  # "tcp", or the path of a GET
    state: str
    detail: str
    published: str | None  # where it is reached, if its port is published
    preview: str | None  # its address, if previews are on; preview() lets somebody in

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> Service:
        return cls(**{k: v[k] for k in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Preview:
    """A way to see a service. link: for a browser, good once and for ten minutes, out of repr as the token is, which
    programs show in the field Durward-Preview-Token at url."""
    service: str
    port: int
    url: str
    link: str = field(repr=False)
    token: str = field(repr=False)
    link_expires_at: int
    expires_at: int

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> Preview:
        return cls(**{k: v[k] for k in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Volume:
    """Files that outlive the sandboxes which mount them, or a snapshot of such."""
    name: str
    policy: str  # whose sandboxes may have it
    state: str  # making, ready, restoring, removing
    size: int  # bytes that it may hold
    used: int | None  # of these, of volume() only: as it was counted last
    access: str  # one or many may write at a time
    snapshot_of: str | None
    labels: Mapping[str, str]
    created_at: int
    mounted: tuple[VolumeMount, ...]  # in sandboxes that run

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> Volume:
        known = {k: v[k] for k in cls.__dataclass_fields__ if k not in ("used", "mounted")}
        return cls(**known, used=v.get("used"),
                   mounted=tuple(VolumeMount(m["sandbox"], m["path"], m["read_only"]) for m in v["mounted"]))


@dataclass(frozen=True)
class Approval:
    """A request that an `ask` rule holds until somebody decides. `query`: names and lengths only."""
    id: str
    sandbox: str
    policy: str
    method: str
    url: str
    query: str
    rule: str
    credential: str
    content_type: str
    upload_bytes: int | None
    sequence: int
    created: int
    expires: int  # it is denied then
    host: str | None = None  # the host of the fleet that holds it; None: the one that was asked

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> Approval:
        return cls(**{k: v[k] for k in cls.__dataclass_fields__ if k != "host"}, host=v.get("host"))


@dataclass(frozen=True)
class Decision:
    """What became of an answer. taken False (the API's 202): it is said, and the host that holds the request has not
    taken it yet; that host may decide otherwise meanwhile."""
    id: str
    decision: str  # allowed or denied
    host: str | None = None  # the host of the fleet that holds it; None: the one that was asked
    taken: bool = True

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> Decision:
        return cls(v["id"], v["decision"], v.get("host"), v.get("taken", True))


@dataclass(frozen=True)
class FleetShare:
    """What a host holds of a budget of the fleet."""
    policy: str
    limit: str  # as "requests 1000/h"
    amount: int  # the limit, of all hosts together
    held: int

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> FleetShare:
        return cls(**{k: v[k] for k in cls.__dataclass_fields__})


@dataclass(frozen=True)
class FleetProblem:
    what: str  # missing, forked, rolled_back, changed, unsigned, unknown
    text: str


@dataclass(frozen=True)
class FleetLog:
    """A host's audit log, by the heads that it signed."""
    state: str  # agrees, doubted, unknown
    head: int  # number of the latest; 0: none
    records: int  # how long the log was then
    heard: int | None
    age_seconds: int | None
    problems: tuple[FleetProblem, ...]

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> FleetLog:
        return cls(v["state"], v["head"], v["records"], v["heard"], v["age_seconds"],
                   tuple(FleetProblem(p["what"], p["text"]) for p in v["problems"]))


@dataclass(frozen=True)
class FleetHost:
    """A host of the fleet. What it says of itself is None where nothing was read."""
    host: str
    this: bool  # the one that was asked
    state: str  # connected, silent, unknown
    why: str | None
    heard: int | None
    age_seconds: int | None
    version: str | None
    uptime_seconds: int | None
    sandboxes: int | None
    held: int | None  # requests that wait for somebody's word
    shares: tuple[FleetShare, ...] | None
    shares_more: int | None
    log: FleetLog | None

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> FleetHost:
        known = {k: v[k] for k in cls.__dataclass_fields__ if k not in ("shares", "log")}
        return cls(**known, shares=None if v["shares"] is None else tuple(map(FleetShare.read, v["shares"])),
                   log=None if v["log"] is None else FleetLog.read(v["log"]))


@dataclass(frozen=True)
class Fleet:
    """All hosts, as the one that was asked has read them `age_seconds` ago; none of them was asked."""
    host: str | None
    connected: bool
    read_at: int | None
    age_seconds: int | None
    hosts: tuple[FleetHost, ...]

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> Fleet:
        return cls(v["host"], v["connected"], v["read"], v["age_seconds"], tuple(map(FleetHost.read, v["hosts"])))


@dataclass(frozen=True)
class Explanation:
    """What a policy says to a request. decision: allow, ask or deny; `placed`: where the credential goes;
    searched_for: the secrets that its reply is searched for."""
    decision: str
    code: str
    why: str
    policy: str
    authority: str
    rule: str | None
    credential: str | None
    placed: str | None
    searched_for: str | None = None

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> Explanation:
        return cls(v["decision"], v["code"], v["why"], v["policy"], v["authority"], v["rule"],
                   v["credential"], v["as"], v.get("searched_for"))


@dataclass(frozen=True)
class RunningExec:
    """A command. kept: it was started by `start`. exit_code: of a kept one that has ended and was not attached to since."""

    id: str
    started_at: int
    kept: bool = False
    attached: bool = False
    exit_code: int | None = None

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> RunningExec:
        return cls(v["id"], v["started_at"], v.get("kept", False), v.get("attached", False), v.get("exit_code"))


@dataclass(frozen=True)
class Event:
    """What happened to a sandbox. sequence: for events(after=...). time: seconds since 1970."""
    sequence: int
    time: int
    sandbox: str
    event: str
    detail: str


@dataclass(frozen=True)
class Identity:
    """Who a remote sandbox is to the proxy. `proxy` holds the token: it says who asks, and no
    secret; it is out of repr all the same. `env` are the policy's variables (placeholders)."""
    id: str
    policy: str
    proxy: str = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    trust_dir: str  # on the daemon's host: the files that the trust variables name
    ca: str = field(repr=False)  # the certificate, PEM
    token: str | None = field(default=None, repr=False)  # None: the listener is bound to the policy
    expires: int | None = None
    # Each certificate of it by its name in a directory of certificates, as OpenSSL looks for it.
    ca_hashed: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, v: Mapping[str, Any]) -> Identity:
        return cls(**{k: v[k] for k in cls.__dataclass_fields__ if k in v})


def _bytes(text: str, encoding: str) -> bytes:
    return base64.b64decode(text) if encoding == "base64" else text.encode()
