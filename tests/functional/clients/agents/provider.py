"""DurwardProvider through Deep Agents Code's own registry and factory. Prints JSON."""
import json
import os

from deepagents_code.integrations.sandbox_factory import create_sandbox
from deepagents_code.integrations.sandbox_provider import SandboxError, SandboxNotFoundError
from deepagents_code.integrations.sandbox_registry import SandboxRegistry

from durward import Durward


def failed(**kw):
    try:
        with create_sandbox("durward", **kw):
            return None
    except (SandboxError, ValueError) as e:
        return [type(e).__name__, str(e)]


def main():
    out, c = {}, Durward(os.environ["THE_SOCKET"])
    meta = SandboxRegistry.load().get_metadata("durward")
    out["metadata"] = [meta.name, meta.working_dir, meta.supports_sandbox_id, meta.supports_snapshot_name,
                       meta.backend_module]
    out["no_daemon"] = failed()
    os.environ["DURWARD_SOCKET"] = "/nonexistent"
    os.environ["DEEPAGENTS_CODE_DURWARD_SOCKET"] = c.socket
    with create_sandbox("durward", params={"labels": {"job": "7"}, "ttl": 900, "env": {"A": "b"}}) as backend:
        out["made"] = [backend.execute("echo $A").output, dict(c.get(backend.id).info.labels), c.get(backend.id).info.ttl]
        with create_sandbox("durward", sandbox_id=backend.id) as again:
            out["again"] = again.id == backend.id
        out["kept"] = c.get(backend.id).info.state
    out["left"] = [s.id for s in c.sandboxes()]
    out["wrong_id"] = failed(sandbox_id="sb-none")
    before = {s.id for s in c.sandboxes()}
    out["snapshot"] = failed(params={"snapshot": "not/a name"})
    out["unkept"] = failed(snapshot_name="never-made", params={"policy": "bounded"})
    out["orphans"] = len({s.id for s in c.sandboxes()} - before)
    for _ in range(2):  # it is made by the first and used by the second
        with create_sandbox("durward", snapshot_name="made-by-dcode") as backend:
            info = c.get(backend.id).info
            out.setdefault("use_or_create", []).append([info.state, [s.name for s in c.snapshots()]])
            backend.execute("echo later >/workspace/later")
    with create_sandbox("durward", snapshot_name="made-by-dcode") as backend:
        out["use_or_create"].append(backend.execute("ls /workspace").output)
    c.delete_snapshot("made-by-dcode")
    out["image"] = failed(params={"image": "no-such-image"})
    box = c.create("coder")
    box.write("/workspace/kept", b"as it was")
    box.snapshot("for-dcode")
    box.stop()
    with create_sandbox("durward", sandbox_id=box.id) as woken:
        out["woken"] = woken.execute("cat kept").output
    with create_sandbox("durward", snapshot_name="for-dcode", params={"image": None, "on_idle": "stop"}) as backend:
        out["of_snapshot"] = [backend.execute("cat kept").output, c.get(backend.id).info.on_idle]
    box.delete()
    c.delete_snapshot("for-dcode")
    out["unknown"] = failed(params={"polcy": "x"})
    out["policy"] = failed(params={"policy": "nope"})
    out["labels"] = failed(params={"labels": "x"})
    out["timeout"] = failed(params={"timeout": "x"})
    print(json.dumps(out))


main()
