"""What can go wrong, as exceptions whose text is one line and says what to do about it."""
from __future__ import annotations

import errno
import json
import ssl


class DurwardError(Exception):
    """Base of all. `code` is the API's constant, `status` its HTTP status (0: no answer came)."""

    def __init__(self, message: str, code: str = "", status: int = 0) -> None:
        super().__init__(" ".join(message.split()))
        self.code = code
        self.status = status


class Unavailable(DurwardError):
    """No daemon answers, or it cannot do this now."""


class BadRequest(DurwardError):
    """The daemon does not accept what was asked."""


class NotFound(DurwardError):
    """There is no such sandbox, snapshot, volume, request or identity."""


class Conflict(DurwardError):
    """A name is taken, the labels belong to a sandbox of another policy, or its state does not allow it."""


class NotRunning(DurwardError):
    """The sandbox is stopped or on its way there."""


class Denied(DurwardError):
    """The daemon does not serve this caller."""


class Unsupported(DurwardError):
    """Not possible on this host, or not built yet."""


class FileError(DurwardError):
    """About one file; `code` is file_not_found, permission_denied, is_directory, not_directory,
    not_empty, invalid_path, too_large, unreadable, no_space, busy or unavailable."""


FILE_CODES = {"file_not_found", "permission_denied", "is_directory", "not_directory", "not_empty",
              "invalid_path", "unreadable", "busy", "no_space", "unavailable"}
_HINTS = {
    "sandbox_not_found": "it was deleted, or its time to live ended: create another",
    "snapshot_not_found": "see which there are (snapshots(), `durward sandbox snapshot ls`)",
    "volume_not_found": "see which there are (volumes(), `durward volume ls`)",
    "template_not_found": "see which there are (templates(), `durward template ls`)",
    "preview_not_found": "the policy says `previews: true`, the daemon `controller: {preview: ADDRESS:PORT}`",
    "volume_in_use": "delete the sandbox that has it, or mount it read-only",
    "not_running": "resume it (resume(), `durward sandbox resume`), or create another",
    "conflict": "choose another name, or other labels",
    "create_failed": "the daemon's log says more",
    "limit": "end what is not needed, or try again later",
    "forbidden": "run as the daemon's user",
    "too_large": "use smaller pieces",
    "token": "make one with `durward token create` where the daemon runs",
    "scope": "make one with that scope: `durward token create --scope …`",
    "unsupported": "`durward doctor` says what this host can",
}
_TYPES: dict[str, type[DurwardError]] = {
    "sandbox_not_found": NotFound, "not_found": NotFound, "snapshot_not_found": NotFound, "conflict": Conflict,
    "template_not_found": NotFound, "preview_not_found": NotFound,
    "volume_not_found": NotFound, "volume_in_use": Conflict,
    "not_running": NotRunning, "forbidden": Denied, "unsupported": Unsupported,
    "no_console": Unsupported,
    "bad_request": BadRequest, "method": BadRequest, "token": Denied, "scope": Denied,
}


def refusal(status: int, body: bytes, of_file: bool = True) -> DurwardError:
    """The exception for an answer that is not 2xx. of_file: what was asked was about one."""
    try:
        error = json.loads(body)["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError):
        return DurwardError("the daemon answered %d without saying why" % status, "no_json", status)
    hint = _HINTS.get(code)
    text = "%s (%s)" % (message, code) + (": " + hint if hint else "")
    kind = _TYPES.get(code)
    if kind is None:
        kind = FileError if code in FILE_CODES and (of_file or status != 503) else Unavailable if status == 503 else \
            BadRequest if 400 <= status < 500 else DurwardError
    return kind(text, code, status)


def unreachable(path: str, error: OSError) -> Unavailable:
    """The exception for a socket that cannot be used."""
    if isinstance(error, TimeoutError):
        return Unavailable("the Durward daemon at %s did not answer in time" % path, "timeout")
    if isinstance(error, ssl.SSLError):  # its errno is none of the system's
        why = getattr(error, "verify_message", "") or error.reason or str(error)
        return Unavailable("%s: %s: give ca=, or set DURWARD_CA, the file of the daemon's CA (`durward ca export`)" % (path, why), "tls")
    if path.startswith("https://") and error.errno in (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH):
        return Unavailable("no Durward daemon answers at %s (%s): its configuration says where, `controller: {https: ADDRESS:PORT}`"
                           % (path, error.strerror), "no_daemon")
    if error.errno in (errno.EACCES, errno.EPERM):
        return Unavailable("%s belongs to another user's daemon: run as that user, or start your own "
                           "with `durward serve`" % path, "permission")
    if error.errno in (errno.ENOENT, errno.ECONNREFUSED):
        return Unavailable("no Durward daemon answers at %s: start one with `durward serve`, or set "
                           "DURWARD_SOCKET" % path, "no_daemon")
    return Unavailable("the Durward daemon at %s: %s" % (path, error.strerror or error),
                       "connection")
