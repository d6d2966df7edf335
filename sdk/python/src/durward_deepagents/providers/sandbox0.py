"""Sandbox0: block-all with one rule, for the proxy's address and port."""
from __future__ import annotations

from typing import Any

from deepagents.backends.protocol import SandboxBackendProtocol
from deepagents_code.model_config import resolve_env_var
from sandbox0 import APIError, Client
from sandbox0.apispec.models.network_egress_policy import NetworkEgressPolicy
from sandbox0.apispec.models.port_spec import PortSpec
from sandbox0.apispec.models.sandbox_config import SandboxConfig
from sandbox0.apispec.models.sandbox_config_env_vars import SandboxConfigEnvVars
from sandbox0.apispec.models.sandbox_network_policy import SandboxNetworkPolicy
from sandbox0.apispec.models.sandbox_network_policy_mode import SandboxNetworkPolicyMode
from sandbox0.apispec.models.traffic_rule import TrafficRule
from sandbox0.apispec.models.traffic_rule_action import TrafficRuleAction
from sandbox0_deepagents.backend import Sandbox0DeepAgentsSandbox

from .base import PairedProvider, Wish, key_of, missing

NOT_FOUND = 404


class Sandbox0Provider(PairedProvider):
    """SANDBOX0_TOKEN; SANDBOX0_BASE_URL where it is not the usual one. options: template (default
    "default"), memory."""

    name, working_dir, package, module = "durward-sandbox0", "/workspace", "sandbox0", "sandbox0"
    locked = frozenset({"config", "network", "env_vars"})

    def _client(self) -> Client:
        url = resolve_env_var("SANDBOX0_BASE_URL")
        where: dict[str, Any] = {"base_url": url} if url else {}
        return Client(token=key_of("SANDBOX0_TOKEN"), **where)

    def create(self, wish: Wish) -> Any:
        rule = TrafficRule(name="durward", action=TrafficRuleAction("allow"), cidrs=wish.gate.networks,
                           ports=[PortSpec(port=wish.gate.port, protocol="tcp")])
        config = SandboxConfig(
            env_vars=SandboxConfigEnvVars.from_dict(wish.env), hard_ttl=wish.life,
            network=SandboxNetworkPolicy(mode=SandboxNetworkPolicyMode("block-all"),
                                         egress=NetworkEgressPolicy(traffic_rules=[rule])))
        return self._client().claim_sandbox(**{"template": "default", **wish.options}, config=config)

    def attach(self, sandbox_id: str) -> Any:
        client = self._client()
        try:
            client.get_sandbox(sandbox_id)
        except APIError as e:
            if e.status_code == NOT_FOUND:
                raise missing(sandbox_id) from e
            raise
        return client.sandbox(sandbox_id)

    def destroy(self, sandbox_id: str) -> None:
        try:
            self._client().delete_sandbox(sandbox_id)
        except APIError as e:
            if e.status_code != NOT_FOUND:
                raise

    def backend(self, sandbox: Any) -> SandboxBackendProtocol:
        backend: SandboxBackendProtocol = Sandbox0DeepAgentsSandbox(sandbox=sandbox, working_dir=self.working_dir)
        return backend
