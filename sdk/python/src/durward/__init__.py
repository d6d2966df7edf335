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
from .models import (
    Approval,
    Decision,
    Denial,
    Event,
    ExecOutput,
    ExecResult,
    Explanation,
    FileEntry,
    FileEvent,
    FileResult,
    Fleet,
    FleetHost,
    FleetLog,
    FleetProblem,
    FleetShare,
    Identity,
    Preview,
    Published,
    RunningExec,
    SandboxInfo,
    Service,
    Snapshot,
    Template,
    Volume,
    VolumeMount,
)

__all__ = [
    "Approval", "AsyncDurward", "AsyncSandbox", "BadRequest", "Conflict", "Decision", "Denial", "Denied", "Durward",
    "DurwardError", "Event", "ExecOutput", "ExecResult", "Explanation", "FileEntry", "FileError",
    "FileEvent", "FileResult", "Fleet", "FleetHost", "FleetLog", "FleetProblem", "FleetShare", "Identity", "NotFound", "NotRunning", "Preview", "Published", "RunningExec",
    "Sandbox", "SandboxInfo", "Service", "Snapshot", "Template", "Unavailable", "Unsupported", "Volume", "VolumeMount",
]
