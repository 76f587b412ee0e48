"""docs/guides/notebook.md: its cells print what it says."""

import contextlib
import io
import re

from conftest import ROOT


def test_the_cells_print_what_the_guide_says(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs/guides/notebook.md").read_text()
    cells = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", text, re.DOTALL | re.MULTILINE)
    assert len(cells) >= 4
    names = {}
    for code, expected in cells:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "notebook.md", "exec"), names)
        assert printed.getvalue() == expected, code
