"""The argument list of ninfer-serve, built in one place: the .bat, the checks and the tests all use this one.

Source of names and order: the option parser of the engine; no prefix matching and no ``--flag=value`` exist,
and the artifact must come first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ninfer_fleet.settings import Serve, Settings
from ninfer_fleet.settings.trap import UNSAFE_IN_BAT

_BARE = re.compile(r"[A-Za-z0-9._:/\\+-]+")
# Values that print as they are, in the order in which they appear on the command line, grouped by line.
_VALUES: tuple[tuple[str, str], ...] = (
    ("max_request_mib", "--max-request-mib"),
    ("log_stats_interval_ms", "--log-stats-interval-ms"),
    ("pending_timeout_ms", "--pending-timeout-ms"),
    ("response_store_max_records", "--response-store-max-records"),
    ("response_store_max_mib", "--response-store-max-mib"),
    ("prefill_chunk", "--prefill-chunk"),
    ("vision_max_tokens", "--vision-max-tokens"),
    ("max_media_items", "--max-media-items"),
    ("max_video_pixels", "--max-video-pixels"),
    ("default_max_tokens", "--default-max-tokens"),
    ("reasoning_effort", "--reasoning-effort"),
    ("temperature", "--temperature"),
    ("top_p", "--top-p"),
    ("top_k", "--top-k"),
    ("min_p", "--min-p"),
    ("presence_penalty", "--presence-penalty"),
    ("frequency_penalty", "--frequency-penalty"),
    ("seed", "--seed"),
)


def steady(settings: Settings) -> list[list[str]]:
    """Flags that change only with the declared settings, one list a line of the .bat.

    Not among them: artifact, API key and draft depth.
    """
    serve = settings.serve
    lines = [
        ["--host", serve.host, "--port", str(serve.port)],
        ["--max-context", str(serve.max_context)],
        ["--kv-dtype", serve.kv_dtype, *_optional("--kv-capacity", serve.kv_capacity)],
        [
            *("--max-concurrency", str(serve.max_concurrency)),
            *("--max-pending-requests", str(serve.max_pending_requests)),
        ],
        *_switches(serve),
        *_cache(serve),
    ]
    if settings.request_log is not None:
        lines.append(["--request-log-jsonl", settings.request_log])
    if settings.gpu.index:
        lines.append(["--device", str(settings.gpu.index)])
    lines += [_optional(flag, getattr(serve, field)) for field, flag in _VALUES]
    return [line for line in lines if line]


def _optional(flag: str, value: Any) -> list[str]:
    return [] if value is None else [flag, str(value)]


def _switches(serve: Serve) -> Iterator[list[str]]:
    if serve.spec is not None:
        yield ["--spec", serve.spec, *(["--lm-head-draft"] if serve.lm_head_draft else [])]
    yield _optional("--model-id", serve.model_id)
    for wanted, flag in (
        (serve.preserve_thinking, "--preserve-thinking"),
        (not serve.thinking, "--no-thinking"),
        (serve.vision, "--vision"),
        (serve.cors, "--cors"),
        (serve.ui is True, "--ui"),
        (serve.ui is False, "--no-ui"),
        (not serve.cuda_graph, "--no-cuda-graph"),
        (not serve.prefix_reuse, "--no-prefix-reuse"),
        (serve.greedy, "--greedy"),
        (serve.wddm_evictable_budget, "--wddm-evictable-budget"),
    ):
        if wanted:
            yield [flag]


def _cache(serve: Serve) -> Iterator[list[str]]:
    if not serve.disk_cache:
        # Said aloud because folder and quota flags would switch it on again, and builds differ in their
        # default.
        yield ["--no-disk-cache"]
        return
    yield [
        "--disk-cache",
        *_optional("--disk-cache-dir", serve.disk_cache_dir),
        *_optional("--disk-cache-gb", serve.disk_cache_gb),
    ]


def full(settings: Settings, api_key: str | None, draft_tokens: int | None) -> list[str]:
    """The whole argument list as the process gets it, without the program's name.

    Example::

        full(settings, api_key="...", draft_tokens=7)[0]   # C:\\ninfer\\models\\qwen3_8_27b.ninfer
    """
    flat = [argument for line in steady(settings) for argument in line]
    depth = _optional("--draft-tokens", draft_tokens) if settings.serve.spec is not None else []
    return [settings.model_path, *flat, *depth, *_optional("--api-key", api_key)]


def quoted(arguments: Iterable[str]) -> str:
    """Arguments as text for a .bat line, each read back by cmd.exe and the C runtime exactly as given.

    Raises ValueError for a text that cannot survive both (settings refuse such values before).
    """
    return " ".join(_quoted(argument) for argument in arguments)


def _quoted(argument: str) -> str:
    if _BARE.fullmatch(argument):
        return argument
    unsafe = not argument.isascii() or not argument.isprintable() or UNSAFE_IN_BAT & set(argument)
    # A backslash before the closing quote would escape it.
    if unsafe or argument.endswith("\\"):
        raise ValueError(f"{argument!r} cannot be passed through a .bat unchanged")
    return f'"{argument}"'
