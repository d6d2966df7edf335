"""LangSmith: its own proxy's allow list names ours and its port; everything else is dropped there."""
from __future__ import annotations

from typing import Any

from deepagents.backends.langsmith import LangSmithSandbox
from deepagents.backends.protocol import SandboxBackendProtocol
from langsmith.sandbox import ResourceNotFoundError, SandboxClient

from .base import PairedProvider, Wish, key_of, missing

HTTP_PORTS = (80, 443)


class LangSmithProvider(PairedProvider):
    """LANGSMITH_SANDBOX_API_KEY or LANGSMITH_API_KEY; LANGSMITH_ENDPOINT where it is not the usual one. The
    listener's port must be neither 80 nor 443: those LangSmith's own proxy terminates. LangSmith takes
    no variables for a sandbox: they are set on each command."""

    name, working_dir, package, module = "durward-langsmith", "/root", "langsmith", "langsmith.sandbox"
    locked = frozenset({"proxy_config", "access_delegation"})

    def _client(self) -> SandboxClient:
        return SandboxClient(api_key=key_of("LANGSMITH_SANDBOX_API_KEY", "LANGSMITH_API_KEY"))

    def create(self, wish: Wish) -> Any:
        if wish.gate.port in HTTP_PORTS:
            raise ValueError("LangSmith takes ports 80 and 443 for its own proxy: let the listener have another")
        places = dict.fromkeys((wish.gate.host, *wish.gate.addresses))
        return self._client().create_sandbox(**{
            "labels": wish.labels, "idle_ttl_seconds": max(60, wish.life // 60 * 60), "delete_after_stop_seconds": 60,
            "proxy_config": {"access_control": {"allow_list": [
                "%s:%d" % ("[%s]" % p if ":" in p else p, wish.gate.port) for p in places]}},
            **wish.options})

    def attach(self, sandbox_id: str) -> Any:
        try:
            return self._client().get_sandbox(sandbox_id)
        except ResourceNotFoundError as e:
            raise missing(sandbox_id) from e

    def destroy(self, sandbox_id: str) -> None:
        try:
            self._client().delete_sandbox(sandbox_id)
        except ResourceNotFoundError:
            pass

    def backend(self, sandbox: Any) -> SandboxBackendProtocol:
        return LangSmithSandbox(sandbox)

    def identify(self, sandbox: Any) -> str:
        return str(sandbox.name)
