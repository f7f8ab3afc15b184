"""Whatever is declared: the server gets exactly that argument list through the .bat and cmd.exe, or the declaration
is refused before anything is sent to a box."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bat_bench import KEY, Scenario, Seen, compile_probe, run_in_memory, run_on_wine
from hypothesis import HealthCheck, Phase, event, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from pydantic import ValidationError
from pyinfra.api.hiddenvalue import HiddenValue

from ninfer_fleet.server import argv
from ninfer_fleet.settings import Settings
from ninfer_fleet.settings.key import check_key
from simbox.engines.wine import locate, prefix
from winfleet.refusal import Refused

# Every character that cmd.exe or the C runtime reads in a way of its own, and some that neither can carry.
HOSTILE = " %^&!()\"'`=,;<>|*?@~#$+-[]{}.:/\\\t\n\x1a\u4e2d\u6587\U0001f600\xe9\u2019"
WORDS = [
    "%PATH%", "%%", "%1", "^^", "&calc", "&&", "||", "!x!", "(x86)", "a b", "  ", "\"", "\\\"", "\\", "\\\\", "..",
    "\u6a21\u578b", "\u5fcd", "it's", "a=b", "a,b;c", "@echo", "rem ", ">x", "2>&1", "nul", "-x", "--host", "%~dp0",
]  # fmt: skip
word = st.text("abcXYZ019" + HOSTILE, max_size=12) | st.sampled_from(WORDS)
plain = st.text("abcXYZ019_-.", min_size=1, max_size=12)
# Mostly what a person could mean, so that enough of it is accepted.
likely = st.text("abcXYZ019 ()'=,;@~#$+[]{}`-_", min_size=1, max_size=12)
part = st.one_of(plain, likely, likely, word, st.lists(word, max_size=3).map("".join))


def sometimes(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def path(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(parts, min_size=1, max_size=3).map(lambda found: "C:\\" + "\\".join(found))


serve_values: dict[str, st.SearchStrategy[Any]] = {
    "host": st.sampled_from(["0.0.0.0", "127.0.0.1", "::1", "100.77.1.2"]),
    "port": st.integers(1024, 65535),
    "model_id": sometimes(st.text("abcXYZ019._:/-", min_size=1, max_size=12)),
    "disk_cache_dir": path(likely.map(lambda text: f"x{text}x")),
    "disk_cache_gb": st.integers(1, 10**6),
    "max_context": st.integers(1, 262_144),
    "kv_capacity": sometimes(st.just("auto")),
    "kv_dtype": st.sampled_from(["bf16", "rk4v4-e8"]),
    "max_concurrency": st.integers(1, 8),
    "max_pending_requests": st.integers(1, 2**31),
    "pending_timeout_ms": sometimes(st.integers(1, 2**31)),
    "temperature": sometimes(st.floats(0, 2)),
    "top_p": sometimes(st.floats(0, 1)),
    "presence_penalty": sometimes(st.floats(-2, 2)),
    "seed": sometimes(st.integers(0, 2**64 - 1)),
    "reasoning_effort": sometimes(st.sampled_from(["low", "xhigh"])),
    "ui": sometimes(st.booleans()),
    "cors": st.booleans(),
    "thinking": st.booleans(),
    "preserve_thinking": st.booleans(),
    "cuda_graph": st.booleans(),
    "disk_cache": st.booleans(),
    "request_log": st.booleans(),
}
nouns = st.fixed_dictionaries(
    {"serve": st.fixed_dictionaries({}, optional=serve_values)},
    optional={
        "layout": st.fixed_dictionaries({"root": path(plain.map(lambda text: f"x{text}x"))}),
        "model": st.fixed_dictionaries({"file_name": plain}),
        "gpu": st.fixed_dictionaries({"index": st.integers(0, 7)}),
    },
)
hostile = st.one_of(
    st.tuples(st.just("serve"), st.sampled_from(["host", "model_id", "kv_dtype", "reasoning_effort"]), word),
    st.tuples(st.just("serve"), st.just("disk_cache_dir"), path(part)),
    st.tuples(st.just("layout"), st.just("root"), path(part)),
    st.tuples(st.just("model"), st.just("file_name"), word),
)
keys = st.text("0123456789abcdefXYZ._~+/=-", min_size=5, max_size=250).map(lambda text: f"0f3b9c7~+/={text}")
depths = st.integers(1, 7)


def accepted(declared: dict[str, Any], key: str, depth: int) -> Scenario | None:
    """The box of a declaration, None when it is refused; nothing but a refusal may come of it."""
    serve = {"api_key": "env:NINFER_API_KEY", **declared["serve"]}
    try:
        settings = Settings.model_validate({**declared, "serve": serve})
        check_key(HiddenValue(key))  # type: ignore[no-untyped-call]
        scenario = Scenario(settings, key=key.encode("ascii") + b"\r\n", draft=str(depth).encode())
        scenario.contents()
    except (ValidationError, Refused):
        return None
    return scenario


def expected(scenario: Scenario) -> list[str]:
    assert scenario.key is not None
    assert scenario.draft is not None
    return argv.full(scenario.settings, scenario.key.decode("ascii").strip(), int(scenario.draft))


@examples(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(nouns, sometimes(hostile), keys | keys | word, depths)
def test_argv_is_as_declared_or_the_declaration_is_refused(
    declared: dict[str, Any], replaced: tuple[str, str, str] | None, key: str, depth: int
) -> None:
    if replaced is not None:
        noun, name, value = replaced
        declared = {**declared, noun: {**declared.get(noun, {}), name: value}}
    scenario = accepted(declared, key, depth)
    event("accepted" if scenario else "refused")
    if scenario is not None:
        assert run_in_memory(scenario).argvs == [expected(scenario)]


@examples(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(path(likely | part))
def test_a_folder_is_passed_as_it_is_or_refused(folder: str) -> None:
    scenario = accepted({"serve": {"disk_cache_dir": folder}}, KEY, 7)
    event("accepted" if scenario else "refused")
    if scenario is not None:
        assert folder in run_in_memory(scenario).argvs[0]


# What a person may type, and whether it is taken.
FOLDERS = {
    "C:\\cache of (x86)": True,
    "C:\\it's, a=b;c\\two  blanks": True,
    "C:\\~tmp\\@echo off\\[1-3] {x} $env `n #1 +": True,
    "C:\\rem\\nul x\\2": True,
    "D:\\a": True,
    "C:\\100%": False,
    "C:\\%PATH%": False,
    "C:\\a^b": False,
    "C:\\a&calc": False,
    "C:\\wow!": False,
    'C:\\a"b': False,
    "C:\\a b\\": False,
    "C:\\a>b": False,
    "C:\\a|b": False,
    "C:\\\u6a21\u578b": False,
    "C:\\\u5fcd": False,
    "C:\\caf\xe9": False,
    "C:\\a\nb": False,
    "C:\\a\tb": False,
    "C:\\a\x1ab": False,
    "C:\\con\\a": False,
    "C:\\a\\LPT1.txt": False,
}
ROOTS = {
    "C:\\n-1.2_x\\fleet": True,
    "C:\\ninfer(1)": False,
    "C:\\it's": False,
    "C:\\a,b": False,
    "C:\\a=b": False,
    "C:\\a;b": False,
    "C:\\@a": False,
    "C:\\100%x": False,
    "C:\\a&b": False,
    "C:\\a^b": False,
    "C:\\a b": False,
    "C:\\\u670d\u52a1": False,
}
TYPED: list[tuple[dict[str, Any], bool]] = [
    *(({"serve": {"disk_cache_dir": folder}}, taken) for folder, taken in FOLDERS.items()),
    *(({"layout": {"root": root}, "serve": {}}, taken) for root, taken in ROOTS.items()),
    ({"serve": {"model_id": "fleet/qwen:27b"}}, True),
    ({"serve": {"model_id": "a b"}}, False),
    ({"serve": {"model_id": "%x%"}}, False),
    ({"serve": {"model_id": "\u5343\u95ee"}}, False),
    ({"serve": {"host": "a&b"}}, False),
    ({"serve": {"host": "fe80::1%3"}}, False),
    ({"serve": {"temperature": 1e-05, "top_p": 1.0, "presence_penalty": -1.5, "seed": 2**64 - 1}}, True),
    ({"serve": {}, "model": {"file_name": "a b.ninfer"}}, False),
    ({"serve": {}, "model": {"file_name": "a%b.ninfer"}}, False),
    ({"serve": {}, "model": {"file_name": ".."}}, False),
    ({"serve": {}, "model": {"file_name": "-x"}}, False),
    ({"serve": {}, "model": {"file_name": "Nul.ninfer"}}, False),
]


@pytest.mark.parametrize(("declared", "taken"), TYPED, ids=repr)
def test_typed_values(declared: dict[str, Any], taken: bool) -> None:
    scenario = accepted(declared, KEY, 3)
    assert (scenario is not None) == taken
    if scenario is not None:
        assert run_in_memory(scenario).argvs == [expected(scenario)]


def random_scenarios(count: int) -> list[Scenario]:
    """Accepted declarations, the same in every run, each with a root of its own."""
    found: list[Scenario] = []

    @examples(
        max_examples=10 * count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(nouns, keys, depths)
    def collect(declared: dict[str, Any], key: str, depth: int) -> None:
        if len(found) < count:
            layout = declared.get("layout", {"root": "C:\\n"})
            own = {**declared, "layout": {"root": f"{layout['root'][:30]}.{len(found)}"}}
            scenario = accepted(own, key, depth)
            if scenario is not None:
                found.append(scenario)

    collect()
    return found


@pytest.fixture(scope="module")
def wine_seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Scenario, Seen]]]:
    """Typed and random declarations, all in one start of Wine."""
    try:
        tools = locate.locate()
    except locate.Missing as missing:
        pytest.skip(str(missing))
    folder: Path = tmp_path_factory.mktemp("argv")
    try:
        compile_probe(folder / "probe.exe")
    except FileNotFoundError:
        pytest.skip("x86_64-w64-mingw32-gcc is not here: apt-get install gcc-mingw-w64-x86-64")
    typed = []
    for number, (declared, taken) in enumerate(TYPED):
        if taken:
            own: dict[str, Any] = {"layout": {"root": f"C:\\typed{number}"}, **declared}
            typed.append(accepted(own, KEY, 1 + number % 7))
    scenarios = [scenario for scenario in typed if scenario is not None] + random_scenarios(40)
    box = folder / "box"
    prefix.create(tools, box)
    try:
        yield list(zip(scenarios, run_on_wine(tools, box, folder / "probe.exe", scenarios), strict=True))
    finally:
        prefix.remove(tools, box)


@pytest.mark.wine
def test_cmd_exe_passes_exactly_what_is_declared(wine_seen: list[tuple[Scenario, Seen]]) -> None:
    assert len(wine_seen) > 45
    wrong = [
        (scenario.settings, seen.argvs)
        for scenario, seen in wine_seen
        if seen.argvs != [expected(scenario)] or seen.code != 0
    ]
    assert wrong == []
