"""fleet.yml as groups, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ninfer_fleet.inventory import InventoryError, read_fleet

ROOT = Path(__file__).parents[2]


def test_the_example_is_a_fleet() -> None:
    groups = read_fleet(ROOT / "inventory" / "fleet.example.yml")
    assert list(groups) == ["rtx4090d"]
    names = [name for name, _ in groups["rtx4090d"]]
    assert names == ["@winrm/gpu01", "@winrm/gpu02"]
    first, second = (data for _, data in groups["rtx4090d"])
    assert first["winrm_host"] == "100.77.174.21"
    assert first["winrm_password"] == "env:NINFER_FLEET_PASSWORD"
    assert second["serve"] == {"max_concurrency": 2}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("boxes: {}", "at least one box"),
        ("- a", "mapping `boxes`"),
        ("boxes: {a: {address: h, user: u, password: hunter2}}", "box a: password"),
        ("boxes: {a: {user: u, password: 'env:P'}}", "address"),
        ("boxes: {a: {address: h, user: u, password: 'env:P', adress: x}}", "adress"),
        ("boxs: {}\nboxes: {a: {address: h, user: u, password: 'env:P'}}", "unknown: boxs"),
        ("boxes: [", "fleet.yml"),
    ],
)
def test_a_fault_is_named_and_never_a_password(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "fleet.yml"
    path.write_text(text)
    with pytest.raises(InventoryError, match=words) as caught:
        read_fleet(path)
    assert "hunter2" not in str(caught.value)
