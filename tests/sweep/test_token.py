"""Ray that we start answers nobody who lacks the token of this process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

DRIVER = """
import os, subprocess, sys
from cbobench.sweep.raysweep import start_ray
ray, ours = start_ray(1, None)
address = ray.get_runtime_context().gcs_address
bare = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
words, to = [sys.executable, "-c", sys.argv[1], address], {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
tokens = ({"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 32}, dict(os.environ))
peers = [subprocess.Popen(words, env=bare | more, text=True, **to) for more in tokens]
for peer in peers:
    print(peer.communicate()[0].strip(), flush=True)
ray.shutdown()
"""
PEER = """
import sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="CRITICAL")
    print("joined")
except ConnectionError:
    print("refused")
"""


@pytest.mark.slow
def test_a_peer_without_the_token_is_refused(tmp_path):
    """Without one, with a wrong one, and, as the control, with the right one; nothing is kept in the home folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    environment |= {"HOME": str(tmp_path / "home"), "RAY_USAGE_STATS_ENABLED": "0"}
    (tmp_path / "home").mkdir()
    words = [sys.executable, "-c", DRIVER, PEER]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.stdout.split() == ["refused", "refused", "joined"], done.stderr
    assert not list((tmp_path / "home").rglob("auth_token"))
