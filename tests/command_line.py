"""The `halfwidth` command in a process of its own, as a user meets it."""

import os
import subprocess
import sys


def halfwidth(*args, cwd=None, cache=None):
    """Run the command; `cache` is the folder for data and finished work, where it matters."""
    command = [sys.executable, "-c", "from halfwidth.cli import main; main()", *map(str, args)]
    environment = os.environ | {"COLUMNS": "160"} | ({} if cache is None else {"HALFWIDTH_CACHE": str(cache)})
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def assert_refused(done, message):
    """Bad input is one clear line and exit code 2."""
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
