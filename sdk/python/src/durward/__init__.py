"""Client of the Durward daemon: sandboxes, commands, files, identities for remote sandboxes."""
from .aio import AsyncDurward, AsyncSandbox
from .client import Durward, Sandbox
from .errors import (
    BadRequest,
    Conflict,
    Denied,
    DurwardError,
    FileError,
    NotFound,
    NotRunning,
    Unavailable,
    Unsupported,
)
from .models import Denial, Event, ExecOutput, ExecResult, FileEntry, FileResult, Identity, SandboxInfo

__all__ = [
    "AsyncDurward", "AsyncSandbox", "BadRequest", "Conflict", "Denial", "Denied", "Durward",
    "DurwardError", "Event", "ExecOutput", "ExecResult", "FileEntry", "FileError", "FileResult",
    "Identity", "NotFound", "NotRunning", "Sandbox", "SandboxInfo", "Unavailable", "Unsupported",
]
