"""Modal: outbound_cidr_allowlist of the proxy's address alone."""
from __future__ import annotations

from typing import Any

import modal
from deepagents.backends.protocol import SandboxBackendProtocol
from langchain_modal import ModalSandbox

from .base import PairedProvider, Wish, missing

APP = "durward-sandboxes"


class ModalProvider(PairedProvider):
    """Credentials as Modal's own package finds them: MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, or its
    file."""

    name, working_dir, package, module = "durward-modal", "/workspace", "langchain-modal", "langchain_modal"
    locked = frozenset({"env", "secrets", "block_network", "outbound_cidr_allowlist", "cidr_allowlist",
                        "outbound_domain_allowlist", "proxy", "_experimental_outbound_policy", "app"})

    def create(self, wish: Wish) -> Any:
        app = modal.App.lookup(APP, create_if_missing=True)
        return modal.Sandbox.create(app=app, env=dict(wish.env), outbound_cidr_allowlist=wish.gate.networks,
                                    tags=wish.labels, **{"timeout": wish.life, "workdir": self.working_dir,
                                                         **wish.options})

    def attach(self, sandbox_id: str) -> Any:
        try:
            return modal.Sandbox.from_id(sandbox_id)
        except modal.exception.NotFoundError as e:
            raise missing(sandbox_id) from e

    def destroy(self, sandbox_id: str) -> None:
        try:
            modal.Sandbox.from_id(sandbox_id).terminate()
        except modal.exception.NotFoundError:
            pass

    def backend(self, sandbox: Any) -> SandboxBackendProtocol:
        backend: SandboxBackendProtocol = ModalSandbox(sandbox=sandbox)
        return backend

    def identify(self, sandbox: Any) -> str:
        return str(sandbox.object_id)
