"""Durward as a sandbox provider of Deep Agents Code: dcode --sandbox durward."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    raise ImportError("durward_deepagents.provider needs Deep Agents Code, on Python 3.12 or later: "
                      "pip install 'durward[dcode]'") from e

from durward import BadRequest, Conflict, Durward, DurwardError, NotFound, Unavailable

from .backend import DEFAULT_TIMEOUT, DurwardSandbox

_PARAMS = ("policy", "labels", "env", "name", "ttl", "idle_ttl", "soft_ttl", "on_soft_ttl", "image", "backend", "on_idle",
           "auto_resume", "snapshot", "volumes", "template", "timeout", "socket")
LABELS = {"made-by": "dcode"}


class DurwardProvider(SandboxProvider):
    """Parameters, in [sandboxes.providers.durward.params] of config.toml: policy, labels, env, name,
    ttl, idle_ttl, soft_ttl, on_soft_ttl, image, backend, on_idle, auto_resume, snapshot, volumes (a list of
    NAME:/path[:ro]), template, timeout (of a command), socket (its path,
    or https://HOST[:PORT]). DURWARD_URL or DURWARD_SOCKET, and DURWARD_POLICY of the environment stand in for
    socket and policy; DEEPAGENTS_CODE_DURWARD_SOCKET and so on win over them."""

    def __init__(self) -> None:
        self._client: Durward | None = None  # delete() is not given the parameters again

    @property
    def metadata(self) -> SandboxProviderMetadata:
        return SandboxProviderMetadata(
            name="durward", working_dir="/workspace",
            install=SandboxInstallHint(kind="package", name="durward[dcode]"),
            supports_sandbox_id=True, supports_snapshot_name=True,
            backend_module="durward_deepagents.backend")

    def get_or_create(self, *, sandbox_id: str | None = None, **kwargs: Any) -> DurwardSandbox:
        given = _given(kwargs)
        timeout = given.pop("timeout", DEFAULT_TIMEOUT)
        if isinstance(timeout, bool) or not isinstance(timeout, int) or timeout < 0:
            raise ValueError("durward: timeout must be seconds, 0 for none: %r" % (timeout,))
        client = self._client = _client(given.pop("socket", None))
        try:
            if sandbox_id is not None:
                return DurwardSandbox(_running(client, sandbox_id), timeout=timeout)
            given.setdefault("policy", resolve_env_var("DURWARD_POLICY"))
            given["labels"] = {**LABELS, **given.get("labels", {})}
            return DurwardSandbox(_created(client, given), timeout=timeout)
        except BadRequest as e:
            raise ValueError("durward: %s" % e) from e
        except DurwardError as e:
            raise SandboxError("durward: %s" % e) from e

    def delete(self, *, sandbox_id: str, **kwargs: Any) -> None:
        """Idempotent: one that is gone is deleted."""
        try:
            (self._client or _client(kwargs.get("socket"))).delete(sandbox_id)
        except NotFound:
            pass
        except DurwardError as e:
            raise SandboxError("durward: sandbox %s is not deleted: %s; its time to live ends it"
                               % (sandbox_id, e)) from e


def _client(socket: Any) -> Durward:
    return Durward(socket or resolve_env_var("DURWARD_URL") or resolve_env_var("DURWARD_SOCKET"))


def _given(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Of config.toml; whoever mistypes one is told."""
    given = {k: v for k, v in kwargs.items() if v is not None}
    odd = sorted(set(given) - set(_PARAMS))
    if odd:
        raise ValueError("durward: unknown parameter %s in [sandboxes.providers.durward.params]; "
                         "there are %s" % (", ".join(odd), ", ".join(_PARAMS)))
    for key in ("labels", "env"):
        table = given.get(key, {})
        if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
            raise ValueError("durward: %s must be a table of strings" % key)
    named = given.get("volumes", [])
    if not isinstance(named, list) or not all(isinstance(v, str) for v in named):
        raise ValueError("durward: volumes must be a list of NAME:/path or NAME:/path:ro")
    return given


def _created(client: Durward, given: dict[str, Any]) -> Any:
    """dcode's --sandbox-snapshot-name is one "to use or create": where there is none, a new sandbox's files
    become it, so that the next one begins where this one does."""
    try:
        return client.create(**given)
    except NotFound as e:
        if e.code != "snapshot_not_found":
            raise
    name = given["snapshot"]
    box = client.create(**{k: v for k, v in given.items() if k != "snapshot"})
    try:
        box.snapshot(name, get_or_create=True)  # another dcode may have made it meanwhile
    except DurwardError:
        box.delete()
        raise
    return box


def _running(client: Durward, sandbox_id: str) -> Any:
    try:
        box = client.get(sandbox_id)
    except NotFound as e:
        raise SandboxNotFoundError("durward: there is no sandbox %s (deleted, or its time to live "
                                   "ended): `durward sandbox ls` shows which there are"
                                   % sandbox_id) from e
    if box.info.state in ("paused", "stopped"):
        try:
            box.resume()
        except (Conflict, Unavailable) as e:
            raise SandboxError("durward: sandbox %s is %s and does not resume: %s" % (
                sandbox_id, box.info.state, e)) from e
    return box
