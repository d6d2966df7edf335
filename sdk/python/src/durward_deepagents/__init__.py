"""Durward's sandboxes for LangChain Deep Agents, and other providers' sandboxes behind its proxy.

The provider for Deep Agents Code is in durward_deepagents.provider, as it needs deepagents-code."""
from .backend import DurwardSandbox
from .pairing import BypassWarning, PairedSandbox, PairingError, Verification, pair
from .scoped import ScopedSandbox, assistant_sandbox, thread_sandbox

__all__ = [
    "BypassWarning", "DurwardSandbox", "PairedSandbox", "PairingError", "ScopedSandbox",
    "Verification", "assistant_sandbox", "pair", "thread_sandbox",
]
