"""Each trap refuses with its reason and its remedy; the production values pass."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pyinfra.api.hiddenvalue import HiddenValue

from ninfer_fleet.settings import Settings, merged
from ninfer_fleet.settings.declared import NOUNS, refusals
from ninfer_fleet.settings.key import check_key
from winfleet.refusal import Refused

ROOT = Path(__file__).parents[2]
KEY = {"api_key": "env:NINFER_API_KEY"}


def refused(**nouns: Any) -> list[str]:
    nouns["serve"] = {**KEY, **nouns.get("serve", {})}
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(nouns)
    return refusals(caught.value)


def group_data() -> list[dict[str, Any]]:
    files = ("all.py", "rtx4090d.py")
    loaded = [runpy.run_path(str(ROOT / "group_data" / name)) for name in files]
    return [{noun: values[noun] for noun in NOUNS if noun in values} for values in loaded]


def test_the_declared_group_data_is_the_published_production_set() -> None:
    box = Settings.model_validate(merged(group_data()))
    assert (box.serve.max_context, box.serve.max_concurrency, box.serve.kv_dtype) == (131_072, 4, "rk4v4-e8")
    assert (box.serve.draft_tokens, box.serve.max_pending_requests, box.serve.disk_cache_gb) == (7, 64, 200)
    assert (box.engine.sm_count, box.engine.cuda_architecture, box.engine.commit) == (114, 89, "3d11fd64")
    assert box.network.allowed == ("100.64.0.0/10", "fd7a:115c:a1e0::/48")
    assert not box.serve.wddm_evictable_budget
    assert box.serve.warnings() == []


REFUSALS = [
    # declared, where, words of the reason
    ({"serve": {"draft_tokens": 0}}, "serve.draft_tokens", "depth 0"),
    ({"serve": {"draft_tokens": 8}}, "serve.draft_tokens", "cudaErrorGraphExecUpdateFailure"),
    ({"serve": {"draft_tokens": 15}}, "serve.draft_tokens", "depth 15"),
    ({"serve": {"controller_draft_tokens": [2, 9]}}, "serve.controller_draft_tokens", "depth 9"),
    ({"serve": {"max_concurrency": 0}}, "serve.max_concurrency", "1 to 8"),
    ({"serve": {"max_concurrency": 9}}, "serve.max_concurrency", "1 to 8"),
    ({"serve": {"wddm_evictable_budget": True}}, "", "drives a display"),
    ({"serve": {"api_key": None}}, "serve", "open server"),
    ({"serve": {"api_key": ""}}, "serve.api_key", "reference"),
    ({"serve": {"api_key": "sk-your-key-here"}}, "serve.api_key", "reference"),
    ({"serve": {"api_key": "env:"}}, "serve.api_key", "reference"),
    ({"serve": {"kv_dtype": "fp8"}}, "serve.kv_dtype", "no KV type of this engine"),
    ({"serve": {"kv_capacity": 100_000}}, "serve", "below max_context"),
    ({"serve": {"kv_capacity": 600_000}}, "serve", "524288"),
    ({"serve": {"vision": True, "spec": "dflash"}}, "serve", "vision together with dflash"),
    ({"serve": {"spec": "dflash"}}, "", "35B-A3B"),
    ({"serve": {"spec": None}}, "serve", "need spec"),
    ({"serve": {"draft_tokens": None}}, "serve", "without draft_tokens"),
    ({"serve": {"vision_max_tokens": 4096}}, "serve", "switch vision on"),
    ({"serve": {"prefill_chunk": 1000}}, "serve.prefill_chunk", "multiple of 128"),
    ({"serve": {"max_context": 300_000}}, "serve.max_context", "262144"),
    ({"serve": {"disk_cache_dir": None}}, "serve", "profile of whatever account"),
    ({"serve": {"disk_cache_dir": "C:\\\u7f13\u5b58"}}, "serve.disk_cache_dir", "not plain ASCII"),
    ({"serve": {"disk_cache_dir": r"C:\100% cache"}}, "serve.disk_cache_dir", "'%'"),
    ({"serve": {"disk_cache_dir": r"C:\a&b"}}, "serve.disk_cache_dir", "'&'"),
    ({"serve": {"disk_cache_dir": "ninfer-cache"}}, "serve.disk_cache_dir", "not an absolute path"),
    ({"serve": {"disk_cache_dir": "C:\\a\\..\\b"}}, "serve.disk_cache_dir", "not an absolute path"),
    ({"serve": {"disk_cache_dir": "C:\\cache\\"}}, "serve.disk_cache_dir", "not an absolute path"),
    ({"serve": {"port": 5986}}, "serve.port", "WinRM"),
    ({"serve": {"greedy": True, "temperature": 0.7}}, "serve", "contradiction"),
    ({"serve": {"max_contxt": 8192}}, "serve.max_contxt", "did you mean 'max_context'"),
    ({"layout": {"root": r"C:\a folder"}}, "layout.root", "blank"),
    ({"layout": {"root": "C:\\" + "n" * 60}}, "layout.root", "260"),
    ({"engine": {"sm_count": 128}}, "", "another card"),
    ({"engine": {"sm_count": 113}, "gpu": {"sm_count": 113}}, "engine.sm_count", "even number"),
    ({"engine": {"commit": "main"}}, "engine.commit", "no commit"),
    ({"engine": {"cuda": "12.6"}}, "engine.cuda", "older than 12.8"),
    ({"engine": {"cuda_architecture": 90}}, "engine.cuda_architecture", "8.6 and 8.9"),
    ({"model": {"container_version": 3}}, "", "bad magic"),
    ({"model": {"url": "https://hub/x/resolve/main/f.ninfer"}}, "model.url", "follows a branch"),
    ({"model": {"sha256": "abc"}}, "model.sha256", "SHA-256"),
    ({"network": {"allowed": ["0.0.0.0/0"]}}, "network.allowed", "nearly everybody"),
    ({"network": {"allowed": ["100.64.0.1/10"]}}, "network.allowed", "no network"),
    ({"task": {"priority": 7}}, "task.priority", "below normal"),
    ({"task": {"logon_type": "InteractiveToken"}}, "task", "boot trigger alone"),
    ({"task": {"account": "SYSTEM"}}, "task", "does not fit"),
]


@pytest.mark.parametrize(("declared", "where", "words"), REFUSALS)
def test_a_trap_is_refused_with_reason_and_remedy(declared: dict[str, Any], where: str, words: str) -> None:
    lines = refused(**declared)
    assert len(lines) == 1
    assert lines[0].startswith(f"{where}: " if where else "")
    assert words in lines[0]
    assert "Remedy: " in lines[0]


@pytest.mark.parametrize("depth", range(1, 8))
def test_every_working_depth_is_taken(depth: int) -> None:
    assert Settings.model_validate({"serve": {**KEY, "draft_tokens": depth}}).serve.draft_tokens == depth


def test_all_refusals_are_told_at_once() -> None:
    lines = refused(serve={"draft_tokens": 9, "kv_dtype": "fp8", "port": 22})
    assert [line.split(":")[0] for line in lines] == ["serve.port", "serve.kv_dtype", "serve.draft_tokens"]


def test_a_key_in_the_place_of_a_reference_is_never_shown() -> None:
    secret = "sk-0123456789abcdef0123456789abcdef"
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({"serve": {"api_key": secret}})
    assert secret not in str(caught.value)
    assert secret not in "\n".join(refusals(caught.value))


def test_a_short_queue_timeout_is_a_warning() -> None:
    box = Settings.model_validate({"serve": KEY})
    assert any("pending_timeout_ms" in line and "Remedy" in line for line in box.serve.warnings())


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("", "empty"),
        ("sk-your-key-here", "example"),
        ("changeme-changeme-changeme", "example"),
        ("7d1e2a", "too short"),
        ("a" * 64, "too uniform"),
        ("0f3b9c77d1e2a4-" * 20, "more than 256"),
        ("has a blank in it 0f3b9c77d1", "characters"),
        ("percent%PATH%0f3b9c77d1e2a4", "characters"),
    ],
)
def test_an_unfit_key_is_refused_without_naming_it(key: str, words: str) -> None:
    with pytest.raises(Refused, match=words) as caught:
        check_key(HiddenValue(key))
    assert not key or key not in str(caught.value)


def test_a_random_key_is_fit() -> None:
    assert (
        check_key(HiddenValue("0f3b9c77d1e2a45566b7c8d9e0f1a2b3")).unmask()
        == "0f3b9c77d1e2a45566b7c8d9e0f1a2b3"
    )


def test_layers_merge_value_by_value_and_leave_their_sources_alone() -> None:
    everywhere = {"serve": {"port": 8080, "ui": None}, "network": {"allowed": ("a", "b")}}
    result = merged([everywhere, {"serve": {"port": 9000}}, {"network": {"allowed": ("c",)}}])
    assert result == {"serve": {"port": 9000, "ui": None}, "network": {"allowed": ("c",)}}
    assert everywhere["serve"]["port"] == 8080


def test_the_release_is_named_after_everything_that_decides_the_build() -> None:
    base = Settings.model_validate({"serve": KEY}).engine
    assert base.release_id.startswith("3d11fd64-sm114-cuda13.3-")
    for change in ({"commit": "0701b973"}, {"cuda": "13.4"}, {"vcpkg_triplet": "x64-windows-release"}):
        other = Settings.model_validate({"serve": KEY, "engine": change}).engine
        assert other.release_id != base.release_id
    same = Settings.model_validate({"serve": KEY, "engine": {"parallel_jobs": 2}}).engine
    assert same.release_id == base.release_id


@pytest.mark.parametrize(
    "path", [r"C:\Windows", r"C:\Windows\Temp\x", r"C:\Users", r"c:\program files\ninfer", r"D:\ProgramData"]
)
def test_a_folder_of_windows_is_never_taken_for_ours(path: str) -> None:
    from ninfer_fleet.settings import Layout, Serve

    for declare in (
        lambda: Layout(root=path),
        lambda: Serve(api_key="env:NINFER_API_KEY", disk_cache_dir=path),
    ):
        with pytest.raises(ValueError, match="belongs to Windows or to other programs"):
            declare()


@pytest.mark.parametrize("cache", [r"C:\ninfer\secrets", r"C:\NINFER"])
def test_the_cache_is_not_laid_into_the_root(cache: str) -> None:
    from ninfer_fleet.settings import Serve, Settings

    with pytest.raises(ValueError, match="lie in each other"):
        Settings(serve=Serve(api_key="env:NINFER_API_KEY", disk_cache_dir=cache))
