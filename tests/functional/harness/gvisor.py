"""gVisor's runsc, where this machine has it."""
import os
import subprocess

from . import tap

PLACES = ("/usr/local/bin/runsc", "/usr/bin/runsc")


def program():
    return next((p for p in PLACES if os.access(p, os.X_OK)), None)


def needed():
    """Why there can be no sandbox under gVisor here, or None."""
    return None if program() else "gVisor's runsc is missing (package runsc)"


def running():
    """Processes of gVisor's below this one."""
    return [pid for pid, name in tap.descendants() if "runsc" in name.split(" ")[0]]


def name(pid):
    return dict(tap.descendants()).get(pid, "")


def version():
    text = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout
    return text.partition("runsc version ")[2].split("\n")[0]
