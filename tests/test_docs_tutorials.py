"""The first pages and the tutorials run from top to bottom."""

import pytest
from documentation import DOCS, PAGES, is_tested, run_fences

TUTORIALS = [p for p in PAGES if is_tested(p) and p.parent.name in ("start", "tutorials")]


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda p: str(p.relative_to(DOCS)))
def test_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    run_fences(page, tmp_path)
