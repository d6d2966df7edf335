"""What every provider of a hosted system does: an identity of the proxy, the sandbox by the vendor's
own package with the proxy's variables and the vendor's network lock set, then pair(), which looks from
inside whether the lock holds. A sandbox that is not locked is deleted again."""
from __future__ import annotations

import ipaddress
import secrets
import socket as sockets
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

try:
    from deepagents_code.integrations.sandbox_provider import (
        SandboxError,
        SandboxInstallHint,
        SandboxNotFoundError,
        SandboxProvider,
        SandboxProviderMetadata,
    )
    from deepagents_code.model_config import resolve_env_var
except ImportError as e:
    raise ImportError("durward_deepagents.providers needs Deep Agents Code, on Python 3.12 or later: "
                      "pip install 'durward[dcode]'") from e

from deepagents.backends.protocol import SandboxBackendProtocol

from durward import Durward, DurwardError, Identity
from durward.trust import files, reached_at, variables

from ..pairing import ELSEWHERE, PairedSandbox, pair

__all__ = ["Gate", "PairedProvider", "SandboxNotFoundError", "Wish", "gate_of", "key_of", "missing", "wish_of"]

LABELS = {"made-by": "durward"}
LIFE = 3600  # seconds that a sandbox lives, where the vendor is told
_COMMON = ("policy", "socket", "proxy_host", "labels", "life", "require_lock", "elsewhere", "options")


@dataclass(frozen=True)
class Gate:
    """Where the sandbox reaches the proxy."""
    host: str
    port: int
    addresses: tuple[str, ...]  # of the host, as seen from here

    @property
    def networks(self) -> list[str]:
        """The addresses as ranges of one."""
        return [str(ipaddress.ip_network(a)) for a in self.addresses]


@dataclass(frozen=True)
class Wish:
    """What a sandbox is to be made with. env: everything, the policy's placeholders too. files: of
    our trust, by their paths inside; pair() uploads them as well. options: further arguments of the
    vendor's own call."""
    env: dict[str, str]
    files: dict[str, bytes]
    gate: Gate
    proxy: str  # URL with the token
    labels: dict[str, str]
    life: int
    options: dict[str, Any]


class PairedProvider(SandboxProvider):
    """Parameters, in [sandboxes.providers.NAME.params] of config.toml: policy, socket, proxy_host (HOST
    or HOST:PORT at which the sandbox reaches the proxy), labels, life (seconds), options (a table of
    further arguments of the vendor's own call), elsewhere (what is tried from inside), and
    require_lock, which is true unless it is said to be false: a sandbox that reaches anything without
    the proxy is deleted again."""

    name: ClassVar[str]          # of the entry point
    working_dir: ClassVar[str]
    package: ClassVar[str]       # the vendor's, at pip
    module: ClassVar[str]        # what must be importable
    reattaches: ClassVar[bool] = True
    locked: ClassVar[frozenset[str]] = frozenset()  # arguments that are ours to set

    def __init__(self) -> None:
        self._paired: dict[str, PairedSandbox] = {}

    @property
    def metadata(self) -> SandboxProviderMetadata:
        return SandboxProviderMetadata(
            name=self.name, working_dir=self.working_dir,
            install=SandboxInstallHint(kind="package", name=self.package),
            supports_sandbox_id=self.reattaches, supports_snapshot_name=False,
            backend_module=self.module)

    # ---- what a vendor's class does ----

    @abstractmethod
    def create(self, wish: Wish) -> Any:
        """A new sandbox, locked. The vendor's own object."""

    @abstractmethod
    def attach(self, sandbox_id: str) -> Any:
        """One that is there; SandboxNotFoundError or any error of the vendor's."""

    @abstractmethod
    def destroy(self, sandbox_id: str) -> None:
        """No error when there is none."""

    @abstractmethod
    def backend(self, sandbox: Any) -> SandboxBackendProtocol:
        """Commands and files in it."""

    def identify(self, sandbox: Any) -> str:
        """Its id before there is a backend, to delete what went wrong."""
        return str(sandbox.id)

    # ---- the provider ----

    def get_or_create(self, *, sandbox_id: str | None = None,
                      **kwargs: Any) -> SandboxBackendProtocol:
        given = self._given(kwargs)
        client = Durward(given.get("socket") or resolve_env_var("DURWARD_URL") or
                         resolve_env_var("DURWARD_SOCKET"))
        host = given.get("proxy_host") or resolve_env_var("DURWARD_PROXY_HOST")
        policy = given.get("policy") or resolve_env_var("DURWARD_POLICY")
        try:
            identity = client.issue_identity(policy, remote=True)
        except DurwardError as e:
            raise SandboxError("durward: %s" % e) from e
        folder = "/tmp/durward-" + secrets.token_hex(8)
        made = None
        try:
            wish = wish_of(identity, host, folder, given)
            self._reachable(wish.gate)
            if sandbox_id is None:
                made = sandbox = self.create(wish)
            else:
                sandbox = self.attach(sandbox_id)
            paired = pair(self.backend(sandbox), policy=policy, socket=client.socket, proxy_host=host,
                          folder=folder, identity=identity, elsewhere=given.get("elsewhere", ELSEWHERE),
                          require_lock=given.get("require_lock", True))
        except BaseException as e:
            self._undo(client, identity, made)
            raise self._said(e) from e
        self._paired[paired.id] = paired
        return paired

    def delete(self, *, sandbox_id: str, **kwargs: Any) -> None:
        paired = self._paired.pop(sandbox_id, None)
        if paired is not None:
            paired.close()
        try:
            self.destroy(sandbox_id)
        except Exception as e:
            raise self._said(e, "sandbox %s is not deleted: " % sandbox_id) from e

    def _reachable(self, gate: Gate) -> None:
        """Before the vendor is asked for anything: an address of this host's alone is none there."""
        found = [ipaddress.ip_address(a.partition("%")[0]) for a in gate.addresses]
        if all(a.is_loopback or a.is_unspecified for a in found):
            raise ValueError(
                "the proxy is at %s:%d, which no sandbox elsewhere can reach; nothing was made. Add "
                "`- { https: 0.0.0.0:8443 }` to `listen` in the daemon's configuration, and set proxy_host (or "
                "DURWARD_PROXY_HOST) to this host's name or address as seen from there" % (gate.host, gate.port))

    def _undo(self, client: Durward, identity: Identity, made: Any) -> None:
        """Nothing of a failed start stays: the identity, nor the sandbox if it is new."""
        try:
            if identity.token is not None:
                client.revoke_identity(identity.id)
        except DurwardError:
            pass  # revoked already, or it ends by itself
        if made is None:
            return
        try:
            self.destroy(self.identify(made))
        except Exception:  # the first error is what is told; the vendor's own time limit ends it
            pass

    def _said(self, e: BaseException, what: str = "") -> BaseException:
        """One line that dcode shows, without anything that the vendor's request held."""
        if isinstance(e, SandboxError) or not isinstance(e, Exception):
            return e
        text = "%s: %s%s" % (self.name, what, " ".join(str(e).split())[:500] or type(e).__name__)
        return ValueError(text) if isinstance(e, ValueError) else SandboxError(text)

    def _given(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        given = {k: v for k, v in kwargs.items() if v is not None}
        odd = sorted(set(given) - set(_COMMON))
        if odd:
            raise ValueError("%s: unknown parameter %s; there are %s, and the vendor's own under options"
                             % (self.name, ", ".join(odd), ", ".join(_COMMON)))
        for key in ("labels", "options"):
            if not isinstance(given.get(key, {}), dict):
                raise ValueError("%s: %s must be a table" % (self.name, key))
        ours = sorted(set(given.get("options", {})) & self.locked)
        if ours:
            raise ValueError("%s: %s among options would undo the lock; leave it out"
                             % (self.name, ", ".join(ours)))
        life = given.get("life", LIFE)
        if isinstance(life, bool) or not isinstance(life, int) or life < 60:
            raise ValueError("%s: life must be seconds, at least 60: %r" % (self.name, life))
        return given


def wish_of(identity: Identity, host: str | None, folder: str, given: Mapping[str, Any]) -> Wish:
    return Wish(env=variables(identity, folder, host),
                files={"%s/%s" % (folder, name): data for name, data in files(identity).items()},
                gate=gate_of(reached_at(identity.proxy, host)), proxy=reached_at(identity.proxy, host),
                labels={**LABELS, **given.get("labels", {})}, life=given.get("life", LIFE),
                options=dict(given.get("options", {})))


def gate_of(proxy: str) -> Gate:
    """A name is looked up here, once: a lock is made of addresses."""
    u = urlsplit(proxy)
    host, port = u.hostname or "", u.port or 0
    try:
        found = sockets.getaddrinfo(host, port, type=sockets.SOCK_STREAM)
    except OSError as e:
        raise ValueError("the proxy's name %s is not known here: say proxy_host" % host) from e
    addresses = tuple(dict.fromkeys(str(f[4][0]) for f in found))
    return Gate(host, port, addresses)


def key_of(*names: str) -> str:
    """The vendor's credential for its own API, which stays here."""
    for name in names:
        value = resolve_env_var(name)
        if value:
            return value
    raise ValueError("no credential: set %s" % " or ".join(names))


def missing(what: str) -> SandboxNotFoundError:
    return SandboxNotFoundError("there is no sandbox %s" % what)
