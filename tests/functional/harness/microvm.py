"""What `backend: microvm` needs, where this machine has it."""
import glob
import os
import re

from . import tap

NEEDED = ((("/usr/local/bin/qemu-system-x86_64", "/usr/bin/qemu-system-x86_64"), "QEMU is missing (package qemu-system-x86)"),
          (("/usr/local/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd"), "virtiofsd is missing (package qemu-system-common)"))
OWN_KERNEL = "/usr/local/lib/durward/microvm/vmlinuz"
OURS = re.compile(r"qemu-system|virtiofsd|durward-(keeper|trunk)")


def kernel():
    """A guest's kernel: one of ours, or the newest of Debian's that can be read with its modules."""
    if os.access(OWN_KERNEL, os.R_OK):
        return OWN_KERNEL
    for kind in ("-cloud-amd64", "-amd64"):
        found = [k for k in glob.glob("/boot/vmlinuz-*" + kind)
                 if os.access(k, os.R_OK) and os.access("/lib/modules/%s/modules.dep" % k[len("/boot/vmlinuz-"):], os.R_OK)]
        if found:
            return max(found)
    return None


def needed():
    """Why there can be no microVM here, or None."""
    for places, why in NEEDED:
        if not any(os.access(p, os.X_OK) for p in places):
            return why
    return None if kernel() else "there is no kernel for a guest (package linux-image-cloud-amd64)"


def running():
    """Processes of microVMs below this one, by name."""
    found = {}
    for pid, _ in tap.descendants():
        try:
            with open("/proc/%d/comm" % pid) as f:
                name = f.read().strip()
        except OSError:
            continue
        if OURS.match(name):
            found[pid] = name
    return found
