"""The page of the file format is what the schemas say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_written_from_the_schemas():
    spec = importlib.util.spec_from_file_location("file_format", ROOT / "tools" / "file_format.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = (ROOT / "docs" / "file-format.md").read_text(encoding="utf-8")
    assert page == tool.page(), "run python tools/file_format.py > docs/file-format.md"
