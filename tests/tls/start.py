#!/usr/bin/python3
"""Starts one of tlsfuzzer's programs as somebody would who knows what a gate has: a leaf with a P-256 key, and of TLS 1.2
ECDHE with AES in GCM or ChaCha20. Where the program asks for ECDHE with an RSA key or AES in CBC it gets that, and where
it takes signatures of RSA keys alone it takes that key's too.

usage: start.py FOLDER PROGRAM [ARGUMENT...]"""
import os
import runpy
import sys

folder = sys.argv[1]
sys.path[:0] = [folder, os.path.join(folder, "site")]
from tlslite import extensions  # noqa: E402
from tlslite.constants import CipherSuite, SignatureScheme  # noqa: E402

for key in ("ECDSA", "RSA"):
    for size, hashed in ((128, 256), (256, 384)):
        ours = getattr(CipherSuite, "TLS_ECDHE_ECDSA_WITH_AES_%d_GCM_SHA%d" % (size, hashed))
        for mode in ("CBC_SHA", "GCM_SHA%d" % hashed):
            setattr(CipherSuite, "TLS_ECDHE_%s_WITH_AES_%d_%s" % (key, size, mode), ours)
CipherSuite.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 = CipherSuite.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256


def with_ours(create):
    def made(self, algorithms):
        ours = SignatureScheme.ecdsa_secp256r1_sha256
        if algorithms and not any(x[1] == ours[1] or x[0] > 8 for x in algorithms):
            algorithms = list(algorithms) + [ours]
        return create(self, algorithms)
    return made


if "sig" not in sys.argv[2]:  # those are about these very lists
    for kind in (extensions.SignatureAlgorithmsExtension, extensions.SignatureAlgorithmsCertExtension):
        kind.create = with_ours(kind.create)
path = os.path.join(folder, "scripts", sys.argv[2])
sys.argv = [path] + sys.argv[3:]
runpy.run_path(path, run_name="__main__")
