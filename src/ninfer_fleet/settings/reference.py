"""The settings as a page of documentation, made from the models themselves so that it cannot go stale.

Run ``python -m ninfer_fleet.settings.reference > docs/settings.md``; a test compares the page with the models.
"""

from __future__ import annotations

from pydantic.fields import FieldInfo

from ninfer_fleet.settings import Engine, Gpu, Layout, Model, Network, Serve, Task
from ninfer_fleet.settings.trap import Values

NOUNS: dict[str, type[Values]] = {
    "layout": Layout,
    "gpu": Gpu,
    "engine": Engine,
    "model": Model,
    "serve": Serve,
    "network": Network,
    "task": Task,
}
INTRODUCTION = """\
# Settings

Made by `python -m ninfer_fleet.settings.reference`; the models in `src/ninfer_fleet/settings/` are the source. Each
noun is a dictionary in `group_data/` (or in a host's data, which is merged over it, key by key).
"""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be declared"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None:
        return "none"
    if isinstance(value, tuple | list):
        return ", ".join(f"`{item}`" for item in value) or "empty"
    return f"`{value}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def page() -> str:
    """The whole page as Markdown text, ending with a line feed."""
    lines = [INTRODUCTION]
    for noun, model in NOUNS.items():
        summary = (model.__doc__ or "").strip().splitlines()[0]
        lines += [f"## {noun}", "", summary, "", "| setting | default | meaning, and why |", "|---|---|---|"]
        lines += [
            f"| `{name}` | {_cell(_default(field))} | {_cell(field.description or '')} |"
            for name, field in model.model_fields.items()
        ]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
