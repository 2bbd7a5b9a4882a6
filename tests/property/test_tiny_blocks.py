"""The same properties where every block, part and index is tiny, so that their edges are met all the time."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# uint64 wraps on purpose when hashes are mixed; only interpreted kernels tell
INTERPRETED = {"NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore::RuntimeWarning"}


def test_results_are_exact_when_blocks_and_parts_are_tiny() -> None:
    command = [sys.executable, "-m", "tests.support.tiny_blocks", "100"]
    done = subprocess.run(  # noqa: S603 - our own interpreter and module
        command, cwd=ROOT, env={**os.environ, **INTERPRETED}, capture_output=True, text=True, timeout=240, check=False
    )
    assert 0 == done.returncode, done.stdout + done.stderr
