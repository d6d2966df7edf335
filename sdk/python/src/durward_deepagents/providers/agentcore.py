"""AgentCore: a code interpreter of its own in VPC mode, whose security groups let only the proxy out. They and
the subnets are made once, by whoever runs the account: options name them."""
from __future__ import annotations

import secrets
from typing import Any

from bedrock_agentcore.tools.code_interpreter_client import CodeInterpreter
from botocore.exceptions import ClientError
from deepagents.backends.protocol import SandboxBackendProtocol
from deepagents_code.model_config import resolve_env_var
from langchain_agentcore_codeinterpreter import AgentCoreSandbox

from .base import PairedProvider, Wish, missing


class AgentCoreProvider(PairedProvider):
    """options: subnets and security_groups (lists) and execution_role (ARN), all required; certificate (ARN of
    a secret with the proxy's certificate). AWS_REGION and AWS's own ways of credentials. Variables are set
    on each command, as AgentCore has none of a session's."""

    name, working_dir = "durward-agentcore", "/tmp"
    package, module = "langchain-agentcore-codeinterpreter", "langchain_agentcore_codeinterpreter"
    reattaches = False
    locked = frozenset({"network_configuration", "networkConfiguration"})

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[str, tuple[Any, str]] = {}

    def create(self, wish: Wish) -> Any:
        given = dict(wish.options)
        subnets, groups = given.pop("subnets", None), given.pop("security_groups", None)
        role, certificate = given.pop("execution_role", None), given.pop("certificate", None)
        if given or not subnets or not groups or not role:
            raise ValueError("options must have subnets, security_groups (whose only way out is the proxy) and "
                             "execution_role, may have certificate" +
                             (", and not %s" % ", ".join(sorted(given)) if given else ""))
        client = CodeInterpreter(region=resolve_env_var("AWS_REGION") or resolve_env_var("AWS_DEFAULT_REGION")
                                 or "us-west-2", integration_source="durward")
        trusted: Any = [{"location": {"secretsManager": {"secretArn": certificate}}}] if certificate else None
        made = client.create_code_interpreter(
            name="durward_" + secrets.token_hex(8), execution_role_arn=role, tags=wish.labels, certificates=trusted,
            network_configuration={"networkMode": "VPC", "vpcConfig": {"subnets": list(subnets),
                                                                       "securityGroups": list(groups)}})
        interpreter = str(made["codeInterpreterId"])
        try:
            client.start(identifier=interpreter, session_timeout_seconds=wish.life)
        except BaseException:
            client.delete_code_interpreter(interpreter)
            raise
        self._running[str(client.session_id)] = (client, interpreter)
        return client

    def attach(self, sandbox_id: str) -> Any:
        raise missing("%s: AgentCore's sessions cannot be attached to" % sandbox_id)

    def destroy(self, sandbox_id: str) -> None:
        client, interpreter = self._running.pop(sandbox_id, (None, ""))
        if client is None:
            return
        client.stop()
        try:
            client.delete_code_interpreter(interpreter)
        except ClientError as e:
            if e.response["Error"]["Code"] != "ResourceNotFoundException":
                raise

    def backend(self, sandbox: Any) -> SandboxBackendProtocol:
        backend: SandboxBackendProtocol = AgentCoreSandbox(interpreter=sandbox)
        return backend

    def identify(self, sandbox: Any) -> str:
        return str(sandbox.session_id)
