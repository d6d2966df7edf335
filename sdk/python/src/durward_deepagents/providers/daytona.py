"""Daytona: network_allow_list of the proxy's address alone, and outbound_proxy_url, by which Daytona sets
the proxy for what it runs itself."""
from __future__ import annotations

from typing import Any

import daytona
from daytona.common.errors import DaytonaNotFoundError
from deepagents.backends.protocol import SandboxBackendProtocol
from deepagents_code.model_config import resolve_env_var
from langchain_daytona import DaytonaSandbox

from .base import PairedProvider, Wish, key_of, missing


class DaytonaProvider(PairedProvider):
    """DAYTONA_API_KEY; DAYTONA_API_URL and DAYTONA_TARGET where they are not the usual ones."""

    name, working_dir = "durward-daytona", "/home/daytona"
    package, module = "langchain-daytona", "langchain_daytona"
    locked = frozenset({"env_vars", "secrets", "network_block_all", "network_allow_list", "domain_allow_list",
                        "outbound_proxy_url"})

    def _client(self) -> Any:
        return daytona.Daytona(daytona.DaytonaConfig(
            api_key=key_of("DAYTONA_API_KEY"), api_url=resolve_env_var("DAYTONA_API_URL"),
            target=resolve_env_var("DAYTONA_TARGET")))

    def create(self, wish: Wish) -> Any:
        return self._client().create(daytona.CreateSandboxFromSnapshotParams(**{
            "env_vars": wish.env, "labels": wish.labels, "network_block_all": False,
            "network_allow_list": ",".join(wish.gate.networks), "outbound_proxy_url": wish.proxy,
            "ttl_minutes": max(1, wish.life // 60), **wish.options}))

    def attach(self, sandbox_id: str) -> Any:
        try:
            return self._client().get(sandbox_id)
        except DaytonaNotFoundError as e:
            raise missing(sandbox_id) from e

    def destroy(self, sandbox_id: str) -> None:
        client = self._client()
        try:
            client.delete(client.get(sandbox_id))
        except DaytonaNotFoundError:
            pass

    def backend(self, sandbox: Any) -> SandboxBackendProtocol:
        backend: SandboxBackendProtocol = DaytonaSandbox(sandbox=sandbox)
        return backend
