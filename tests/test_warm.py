"""A process of the warm Python is for its parent what a fresh one would be."""

import signal
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_streams_status_and_signals(warm_python: str, tmp_path: Path) -> None:
    """Tests of commands would else pass whatever these do; other words than ``-m`` get a fresh process."""
    st_xling = str(Path(warm_python).with_name("st-xling"))
    listed = subprocess.run([warm_python, "-m", "st_xling.cli", "train", "--list"], capture_output=True, text=True)
    assert listed.returncode == 0 and "dap" in listed.stdout and listed.stderr == ""
    refused = subprocess.run([st_xling, "slim", "nowhere"], capture_output=True, text=True, cwd=tmp_path)
    assert refused.returncode == 2 and "Missing option" in refused.stderr and refused.stdout == ""
    piped = subprocess.run([warm_python, "-m", "json.tool"], input='{"a": 1}', capture_output=True, text=True)
    assert piped.stdout == '{\n    "a": 1\n}\n'

    for number in (signal.SIGTERM, signal.SIGKILL):
        waiting = subprocess.Popen([warm_python, "-m", "http.server", "0", "--bind", "127.0.0.1"])
        waiting.send_signal(number)
        assert waiting.wait(60) == -number
    program = "import sys; print('torch' in sys.modules)"
    fresh = subprocess.run([warm_python, "-c", program], capture_output=True, text=True)
    assert fresh.stdout == "False\n"
