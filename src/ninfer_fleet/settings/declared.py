"""Everything declared for one box, put together from group_data and inventory, or refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError, model_validator
from pydantic_core import ErrorDetails
from pyinfra import logger
from pyinfra.api.hiddenvalue import HiddenValue

from ninfer_fleet.settings.box import Gpu, Layout
from ninfer_fleet.settings.engine import Engine
from ninfer_fleet.settings.key import check_key
from ninfer_fleet.settings.model import Model
from ninfer_fleet.settings.network import Network
from ninfer_fleet.settings.serve import Serve
from ninfer_fleet.settings.task import Task
from ninfer_fleet.settings.trap import Values, refuse
from ninfer_fleet.settings.wording import shown, wanted
from winfleet import secret_reference
from winfleet.refusal import Refused, fail_box


def _nested(one: str, other: str) -> bool:
    """Whether one of two folders is, or lies in, the other."""
    first, second = f"{one}\\".casefold(), f"{other}\\".casefold()
    return first.startswith(second) or second.startswith(first)


class Settings(Values):
    """The declared state of one box: the nouns of group_data.

    Example::

        box = declared(host)
        if box:
            print(box.serve.max_context, box.layout.current)
    """

    layout: Layout = Layout()
    gpu: Gpu = Gpu()
    engine: Engine = Engine()
    model: Model = Model()
    serve: Serve
    network: Network = Network()
    task: Task = Task()

    @property
    def model_path(self) -> str:
        """Where the artifact lies on the box."""
        return self.layout.below("models", self.model.file_name)

    @property
    def request_log(self) -> str | None:
        """The request log's path, None when it is off."""
        return self.layout.below("logs", "requests.jsonl") if self.serve.request_log else None

    @property
    def served_model_id(self) -> str:
        """The name that /v1/models answers."""
        return self.serve.model_id or self.model.model_id

    def key(self) -> HiddenValue | None:
        """The API key, fetched through its reference. Raises Refused when it is missing, an example, or
        unsafe."""
        if self.serve.api_key is None:
            return None
        return check_key(secret_reference.resolve(self.serve.api_key, "serve.api_key"))

    @model_validator(mode="after")
    def _fits_together(self) -> Settings:
        for error in self._contradictions():
            raise error
        return self

    def _contradictions(self) -> Iterator[Exception]:
        if self.engine.sm_count != self.gpu.sm_count:
            yield refuse(
                f"engine.sm_count {self.engine.sm_count} is not gpu.sm_count {self.gpu.sm_count}: "
                f"grids sized for "
                "another card leave a partial wave in every decode step",
                "declare the same number in both: 114 for the 4090 D",
            )
        cache = self.serve.disk_cache_dir
        if cache is not None and _nested(cache, self.layout.root):
            yield refuse(
                f"serve.disk_cache_dir {self.serve.disk_cache_dir!r} and layout.root {self.layout.root!r} lie in each "
                "other: the cache is purged and has an access list of its own",
                r"declare a folder beside the root, such as C:\ninfer-cache",
            )
        if self.serve.wddm_evictable_budget and self.gpu.display:
            yield refuse(
                "serve.wddm_evictable_budget on a card that drives a display oversubscribes it: "
                "the server dies "
                "while loading or in the middle of a prefill, and logs nothing",
                "declare wddm_evictable_budget False, or gpu.display False on a card with no "
                "monitor attached",
            )
        if self.serve.spec == "dflash" and "35b" not in self.model.target:
            yield refuse(
                f"dflash exists for the 35B-A3B model only, not for {self.model.target}",
                "declare serve.spec 'mtp'",
            )
        if self.model.container_version not in self.engine.container_versions:
            versions = ", ".join(str(version) for version in self.engine.container_versions)
            yield refuse(
                f"engine {self.engine.commit} reads model containers of version {versions}, not "
                f"{self.model.container_version} ('bad magic', 'artifact object was not consumed')",
                "pin an artifact of a version it reads, or another engine commit together with its versions",
            )


NOUNS = tuple(Settings.model_fields)


def merged(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Deep-merge dictionaries, later ones over earlier ones; anything but a dictionary replaces.

    pyinfra itself replaces a nested dictionary as a whole, so a box that overrides one value would lose all
    others.

    Example::

        merged([{"serve": {"port": 8080, "ui": None}}, {"serve": {"port": 9000}}])
        # {"serve": {"port": 9000, "ui": None}}
    """
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
                result[key] = merged([result[key], value])
            else:
                result[key] = merged([value]) if isinstance(value, Mapping) else value
    return result


def _everything(host: Any) -> list[Mapping[str, Any]]:
    """All data of a host, weakest first: all, its groups in order, its own data, --data."""
    inventory = host.inventory
    groups = [inventory.get_group_data(group) for group in host.groups if group != "all"]
    return [inventory.get_data(), *groups, inventory.get_host_data(host.name), inventory.get_override_data()]


def layers(host: Any) -> list[dict[str, Any]]:
    """What is declared for a host, weakest first."""
    return [{noun: layer[noun] for noun in NOUNS if noun in layer} for layer in _everything(host)]


def misspelt(host: Any) -> list[str]:
    """A line for each dictionary whose name is nearly that of settings: passed over, it would declare nothing."""
    names = {
        name for layer in _everything(host) for name, value in layer.items() if isinstance(value, Mapping)
    }
    return [
        f"{name}: no such settings. Remedy: did you mean {close[0]!r}? (known: {', '.join(NOUNS)})"
        for name in sorted(names - set(NOUNS))
        if (close := get_close_matches(name, NOUNS, n=1, cutoff=0.75))
    ]


def refusals(error: ValidationError) -> list[str]:
    """One line for each refused value: where, what is wrong, how to mend it."""
    lines: dict[tuple[str, ...], list[str]] = {}
    details = error.errors(include_url=False)
    entries = {detail["loc"][:-1] for detail in details if detail["loc"]}
    for detail in details:
        # pydantic counts only the entries that it took, and would call the list too short as well.
        if detail["type"] != "too_short" or detail["loc"] not in entries:
            lines.setdefault(_place(detail["loc"]), []).append(_line(detail))
    # A value of several kinds ("auto" or a number) is refused once for each.
    return [_joined(place, list(dict.fromkeys(told))) for place, told in lines.items()]


def _place(loc: tuple[int | str, ...]) -> tuple[str, ...]:
    """The way to a setting, without what pydantic adds for the kinds that a value may have."""
    noun = Settings.model_fields.get(str(loc[0])) if loc else None
    named = 2 if noun is not None else 1
    return (*map(str, loc[:named]), *(str(part) for part in loc[named:] if isinstance(part, int)))


def _joined(place: tuple[str, ...], told: list[str]) -> str:
    where = f"{'.'.join(place)}: " if place else ""
    found, mark, _ = told[0].partition("; wanted: ")
    if mark and len(told) > 1:
        kinds = " or ".join(one.partition("; wanted: ")[2].partition(". Remedy: ")[0] for one in told)
        return f"{where}{found}; wanted: {kinds}. {_REMEDY}"
    return where + told[0]


_REMEDY = "Remedy: correct it in group_data or in the inventory"


def _line(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        noun, name = str(detail["loc"][0]), str(detail["loc"][-1])
        field = Settings.model_fields.get(noun)
        known = list(getattr(field.annotation, "model_fields", {})) if field else list(NOUNS)
        close = get_close_matches(name, known, n=1)
        remedy = f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(known)
        return f"no such setting. Remedy: {remedy}"
    if detail["type"] == "refused":
        return detail["msg"]
    if detail["type"] == "missing":
        return f"found nothing; wanted: {wanted(detail)}. {_REMEDY}"
    name = next((part for part in detail["loc"][1:2] if isinstance(part, str)), "")
    return f"found {shown(detail['input'], name)}; wanted: {wanted(detail)}. {_REMEDY}"


def declared(host: Any) -> Settings | None:
    """The settings of a host from its group_data and inventory.

    Each refused value is printed and fails this host alone (also under --dry); then None is returned. Values
    that work but will hurt are printed as warnings. The API key is fetched once here, so that a missing or
    example key is refused before anything is done.
    """
    try:
        if lines := misspelt(host):
            raise Refused("\n  ".join(lines))
        settings = Settings.model_validate(merged(layers(host)))
        settings.key()
        if settings.task.account is None and not host.data.get("winrm_user"):
            raise Refused(
                "task.account: no account is declared, and none connects either. Remedy: declare task.account"
            )
    except ValidationError as error:
        fail_box("Declared settings refused:\n" + "\n".join(f"  {line}" for line in refusals(error)))
        return None
    except (Refused, secret_reference.SecretUnavailable) as error:
        fail_box(f"Declared settings refused:\n  {error}")
        return None
    for warning in settings.serve.warnings():
        logger.warning(f"{host.print_prefix}{warning}")
    return settings
