"""Every fact that code, tests or pages cite lies in docs/facts, under a heading of that name."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FACTS = ROOT / "docs" / "facts"
LINKED = re.compile(r"\]\((\w+\.md)?#([\w-]+)\)")
PLACES = ("src", "tests", "docs", "deploys", "inventory", "group_data", "templates", "bootstrap")
KINDS = {".py", ".ps1", ".yml", ".md", ".j2", ".c"}


def _anchor(heading: str) -> str:
    """The anchor that Python-Markdown's toc extension and GitHub both make of a heading of plain words."""
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading.strip().lower()))


def _anchors(page: Path) -> set[str]:
    lines = page.read_text(encoding="utf-8").splitlines()
    return {_anchor(line.lstrip("#")) for line in lines if line.startswith("#")}


def _texts() -> list[tuple[Path, str]]:
    found = [ROOT / "README.md", ROOT / "deploy.py"]
    for place in PLACES:
        found += [p for p in sorted((ROOT / place).rglob("*")) if p.is_file() and p.suffix in KINDS]
    return [(path, path.read_text(encoding="utf-8")) for path in found if path != Path(__file__).resolve()]


def test_every_cited_fact_has_its_heading() -> None:
    anchors = {page.name: _anchors(page) for page in FACTS.glob("*.md")}
    missing = []
    for path, text in _texts():
        cited = re.findall(r"docs/facts/([\w-]+\.md)(?:#([\w-]+))?", text)
        if path.parent == FACTS:
            cited += [(page or path.name, name) for page, name in LINKED.findall(text)]
        missing += [
            f"{path.relative_to(ROOT)} cites {page}#{name}"
            for page, name in cited
            if page not in anchors or (name and name not in anchors[page])
        ]
    assert not missing


def test_nothing_cites_notes_that_a_reader_does_not_have() -> None:
    unreachable = re.compile(r"research: ?\w|shared/research|field notes|the seed'?s? (?:figures|box|notes)")
    citing = [
        f"{path.relative_to(ROOT)}:{text[: match.start()].count(chr(10)) + 1}"
        for path, text in _texts()
        for match in unreachable.finditer(text)
    ]
    assert not citing


def test_every_section_of_facts_says_how_they_are_known() -> None:
    known = re.compile(r"\b(?:specified|read|recorded|measured|reported|published)\b", re.IGNORECASE)
    bare = []
    for page in FACTS.glob("*.md"):
        if page.name == "index.md":
            continue
        for section in re.split(r"(?m)^## ", page.read_text(encoding="utf-8"))[1:]:
            title, _, body = section.partition("\n")
            if not known.search(body):
                bare.append(f"{page.name}: {title}")
    assert not bare
