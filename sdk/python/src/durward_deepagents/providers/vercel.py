"""Vercel: a network policy that denies every name and allows the proxy's address."""
from __future__ import annotations

from typing import Any

from deepagents.backends.protocol import SandboxBackendProtocol
from deepagents_code.model_config import resolve_env_var
from langchain_vercel_sandbox import VercelSandbox
from vercel.sandbox import NetworkPolicyCustom, NetworkPolicySubnets, Sandbox

from .base import PairedProvider, SandboxNotFoundError, Wish, missing


class VercelProvider(PairedProvider):
    """VERCEL_TOKEN, VERCEL_TEAM_ID and VERCEL_PROJECT_ID, or what Vercel's package finds."""

    name, working_dir = "durward-vercel", "/vercel/sandbox"
    package, module = "langchain-vercel-sandbox", "langchain_vercel_sandbox"
    locked = frozenset({"env", "network_policy", "token", "team_id", "project_id"})

    def _access(self) -> dict[str, Any]:
        names = {"token": "VERCEL_TOKEN", "team_id": "VERCEL_TEAM_ID", "project_id": "VERCEL_PROJECT_ID"}
        found = {k: resolve_env_var(v) for k, v in names.items()}
        return {k: v for k, v in found.items() if v}

    def create(self, wish: Wish) -> Any:
        lock = NetworkPolicyCustom(allow=[], subnets=NetworkPolicySubnets(allow=wish.gate.networks))
        return Sandbox.create(**{"runtime": "python3.13", "timeout": wish.life * 1000, **wish.options},
                              env=wish.env, network_policy=lock, **self._access())

    def attach(self, sandbox_id: str) -> Any:
        return _found(sandbox_id, self._access())

    def destroy(self, sandbox_id: str) -> None:
        try:
            _found(sandbox_id, self._access()).stop()
        except SandboxNotFoundError:
            pass

    def backend(self, sandbox: Any) -> SandboxBackendProtocol:
        backend: SandboxBackendProtocol = VercelSandbox(sandbox=sandbox)
        return backend

    def identify(self, sandbox: Any) -> str:
        return str(sandbox.sandbox_id)


def _found(sandbox_id: str, access: dict[str, Any]) -> Any:
    try:
        return Sandbox.get(sandbox_id=sandbox_id, **access)
    except Exception as e:
        if getattr(getattr(e, "response", None), "status_code", None) == 404:
            raise missing(sandbox_id) from e
        raise
