"""LangChain's own standard tests of sandbox backends, on a sandbox of the daemon at DURWARD_SOCKET.
Seven fail with every provider: langchain-tests 1.1.9 is older than deepagents 0.7.0 (write replaces)
and 0.7.7 (glob gives absolute paths of files)."""
import os

import pytest
from langchain_tests.integration_tests import SandboxIntegrationTests

from durward import Durward
from durward_deepagents import DurwardSandbox

OLD_GLOB = pytest.mark.xfail(reason="the suite wants relative paths and directories of glob")


class TestDurwardStandard(SandboxIntegrationTests):
    @pytest.fixture(scope="class")
    def sandbox(self):
        # The suite calls `python`, which Debian's own packages do not have.
        box = Durward().create(env={"PATH": "/workspace/bin:/usr/bin:/bin"})
        with DurwardSandbox(box) as backend:
            made = backend.execute("mkdir -p /workspace/bin && ln -s /usr/bin/python3 /workspace/bin/python")
            assert made.exit_code == 0, made.output
            assert os.environ["SUITE_UID"] == backend.execute("id -u").output.strip()
            yield backend

    @pytest.mark.xfail(reason="write replaces a file since deepagents 0.7.0")
    def test_write_existing_file_fails(self, sandbox_backend, sandbox_test_root):
        super().test_write_existing_file_fails(sandbox_backend, sandbox_test_root)

    @OLD_GLOB
    def test_glob(self, sandbox_backend, sandbox_test_root):
        super().test_glob(sandbox_backend, sandbox_test_root)

    @OLD_GLOB
    def test_glob_basic_pattern(self, sandbox_backend, sandbox_test_root):
        super().test_glob_basic_pattern(sandbox_backend, sandbox_test_root)

    @OLD_GLOB
    def test_glob_with_directories(self, sandbox_backend, sandbox_test_root):
        super().test_glob_with_directories(sandbox_backend, sandbox_test_root)

    @OLD_GLOB
    def test_glob_hidden_files_explicitly(self, sandbox_backend, sandbox_test_root):
        super().test_glob_hidden_files_explicitly(sandbox_backend, sandbox_test_root)

    @OLD_GLOB
    def test_glob_with_character_class(self, sandbox_backend, sandbox_test_root):
        super().test_glob_with_character_class(sandbox_backend, sandbox_test_root)

    @OLD_GLOB
    def test_glob_with_question_mark(self, sandbox_backend, sandbox_test_root):
        super().test_glob_with_question_mark(sandbox_backend, sandbox_test_root)
