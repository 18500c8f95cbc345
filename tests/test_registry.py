"""Kinds by name: built-in ones, and those of installed packages."""

import pytest

from fieldbo.errors import InputError, UnknownNameError
from fieldbo.mission.kinds import POLICIES


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Make an installed package whose entry points are given as lines."""

    def install(*lines):
        info = tmp_path / "plume-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.4\nName: plume\nVersion: 1\n")
        (info / "entry_points.txt").write_text("[fieldbo.policies]\n" + "\n".join(lines) + "\n")
        monkeypatch.syspath_prepend(tmp_path)

    return install


@pytest.mark.parametrize("target", ["nosuch:Thing", "json:Nope", "string:ascii_letters"])
def test_a_package_that_cannot_be_loaded_is_named_in_the_error(installed, target):
    installed(f"bad = {target}")
    with pytest.raises(InputError, match="policy 'bad' of the package plume") as caught:
        POLICIES.get("bad", where="m.toml: policy.kind")
    assert caught.value.where == "m.toml: policy.kind"
    assert "plume" in caught.value.fix


def test_a_package_that_cannot_be_loaded_does_not_hide_the_other_policies(installed, command):
    installed("bad = nosuch:Thing")
    code, output, _ = command("policies")
    assert code == 0
    assert "bad" in output
    assert "truvar" in output


def test_an_unknown_name_lists_built_in_and_installed_ones(installed):
    installed("far-straddle = fieldbo.policies.baselines:Random")
    with pytest.raises(UnknownNameError, match="did you mean 'far-straddle'"):
        POLICIES.get("far-stradle")
