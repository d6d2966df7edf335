"""Runloop: a network policy that allows the proxy's address and port, and neither gateways nor mirrors; the
certificates are there before anything runs."""
from __future__ import annotations

from typing import Any

from deepagents.backends.protocol import SandboxBackendProtocol
from deepagents_code.model_config import resolve_env_var
from langchain_runloop import RunloopSandbox
from runloop_api_client import NotFoundError
from runloop_api_client.sdk import RunloopSDK

from .base import PairedProvider, Wish, key_of, missing


class RunloopProvider(PairedProvider):
    """RUNLOOP_API_KEY; RUNLOOP_BASE_URL where it is not the usual one."""

    name, working_dir = "durward-runloop", "/home/user"
    package, module = "langchain-runloop", "langchain_runloop"
    locked = frozenset({"environment_variables", "secrets", "gateways", "mcp", "launch_parameters"})

    def __init__(self) -> None:
        super().__init__()
        self._policies: dict[str, str] = {}

    def _client(self) -> RunloopSDK:
        return RunloopSDK(bearer_token=key_of("RUNLOOP_API_KEY"), base_url=resolve_env_var("RUNLOOP_BASE_URL"))

    def create(self, wish: Wish) -> Any:
        client = self._client()
        policy = client.api.network_policies.create(
            name="durward", allow_all=False, allow_agent_gateway=False, allow_mcp_gateway=False,
            allow_runloop_mirrors=False, allow_devbox_to_devbox=False, allowed_hostnames=[],
            allowed_cidrs=[{"cidr": n, "ports": [{"port": wish.gate.port}]} for n in wish.gate.networks])
        texts = {path: data.decode() for path, data in wish.files.items() if path.endswith((".crt", ".pem"))}
        try:
            box = client.devbox.create(
                environment_variables=wish.env, metadata=wish.labels, file_mounts=texts,
                launch_parameters={"network_policy_id": policy.id, "keep_alive_time_seconds": wish.life},
                **wish.options)
        except BaseException:
            client.api.network_policies.delete(policy.id)
            raise
        self._policies[box.id] = policy.id
        return box

    def attach(self, sandbox_id: str) -> Any:
        client = self._client()
        try:
            client.api.devboxes.retrieve(sandbox_id)
        except NotFoundError as e:
            raise missing(sandbox_id) from e
        return client.devbox.from_id(sandbox_id)

    def destroy(self, sandbox_id: str) -> None:
        api = self._client().api
        try:
            api.devboxes.shutdown(sandbox_id)
        except NotFoundError:
            pass
        policy = self._policies.pop(sandbox_id, None)
        if policy is not None:
            api.network_policies.delete(policy)

    def backend(self, sandbox: Any) -> SandboxBackendProtocol:
        backend: SandboxBackendProtocol = RunloopSandbox(devbox=sandbox)
        return backend
