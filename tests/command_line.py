"""The `halfwidth` command in a process of its own, as a user meets it."""

import os
import subprocess
import sys

import pytest


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


def refused(*cases):
    """A test for every command line and the words in which it is refused."""
    return pytest.mark.parametrize(("arguments", "message"), cases)
