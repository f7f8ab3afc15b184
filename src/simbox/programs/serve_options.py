"""The command line of ninfer-serve, as strict as the real one.

The artifact comes first; no prefixes of flags, no `--flag=value`; a repeated flag's last value wins;
whatever is wrong is told on stderr with the whole usage, exit code 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

KV_DTYPES = ("bf16", "int8", "rk8v4", "rk4v4", "rk4v4-e8", "rk2v4-e8")
MAXIMUM_CONTEXT = 1048576
PAGE_TOKENS = 64


class UsageError(Exception):
    """A wrong command line; the text is the message."""


@dataclass
class Options:
    """Parsed values; the names are those of the flags."""

    artifact: str
    values: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError as error:
            raise AttributeError(name) from error

    @property
    def draft(self) -> int:
        """Draft tokens in use: 0 without speculation."""
        if self.spec is None:
            return 0
        return int(self.draft_tokens or 3)

    @property
    def context_pages(self) -> int:
        """Pages of one full context."""
        return -(-int(self.max_context) // PAGE_TOKENS)


def _integer(low: int, high: int | None = None, multiple: int = 1) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text) if text.strip() == text and "_" not in text else None
        except ValueError:
            number = None
        if number is None or number < low or (high is not None and number > high) or number % multiple:
            raise ValueError
        return number

    return parse


def _number(low: float, high: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        number = float(text)
        if not low <= number <= high:
            raise ValueError
        return number

    return parse


def _text(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError
        return text

    return parse


def _capacity(text: str) -> int | None:
    return None if text == "auto" else _integer(1)(text)


# flag: (name, parser or None for a switch, what the flag sets besides its own value)
_FLAGS: dict[str, tuple[str, Callable[[str], Any] | None, dict[str, Any]]] = {
    "--host": ("host", _text, {}),
    "--port": ("port", _integer(1, 65535), {}),
    "--api-key": ("api_key", str, {}),
    "--cors": ("cors", None, {"cors": True}),
    "--ui": ("ui", None, {"ui": True}),
    "--no-ui": ("ui", None, {"ui": False}),
    "--model-id": ("model_id", _text, {}),
    "--max-request-mib": ("max_request_mib", _integer(1), {}),
    "--request-log-jsonl": ("request_log_jsonl", _text, {}),
    "--log-stats-interval-ms": ("log_stats_interval_ms", _integer(0), {}),
    "--max-concurrency": ("max_concurrency", _integer(1, 8), {}),
    "--max-pending-requests": ("max_pending_requests", _integer(1), {}),
    "--pending-timeout-ms": ("pending_timeout_ms", _integer(1), {}),
    "--response-store-max-records": ("response_store_max_records", _integer(1), {}),
    "--response-store-max-mib": ("response_store_max_mib", _integer(1), {}),
    "--device": ("device", _integer(0), {}),
    "--max-context": ("max_context", _integer(1, MAXIMUM_CONTEXT), {}),
    "--kv-capacity": ("kv_capacity", _capacity, {"kv_capacity_given": True}),
    "--prefill-chunk": ("prefill_chunk", _integer(128, None, 128), {}),
    "--kv-dtype": ("kv_dtype", _one_of(*KV_DTYPES), {}),
    "--spec": ("spec", _one_of("mtp", "dflash"), {}),
    "--draft-tokens": ("draft_tokens", _integer(1, 15), {}),
    "--lm-head-draft": ("lm_head_draft", None, {"lm_head_draft": True}),
    "--no-cuda-graph": ("cuda_graph", None, {"cuda_graph": False}),
    "--no-prefix-reuse": ("prefix_reuse", None, {"prefix_reuse": False}),
    "--vision": ("vision", None, {"vision": True}),
    "--vision-max-tokens": ("vision_max_tokens", _integer(1), {"vision": True}),
    "--vision-limit": ("vision_max_tokens", _integer(1), {"vision": True}),
    "--max-media-items": ("max_media_items", _integer(1), {"vision": True}),
    "--max-video-pixels": ("max_video_pixels", _integer(1), {"vision": True}),
    "--disk-cache": ("disk_cache", None, {"disk_cache": True}),
    "--prompt-cache": ("disk_cache", None, {"disk_cache": True}),
    "--enable-prompt-cache": ("disk_cache", None, {"disk_cache": True}),
    "--no-disk-cache": ("disk_cache", None, {"disk_cache": False}),
    "--no-prompt-cache": ("disk_cache", None, {"disk_cache": False}),
    "--disk-cache-dir": ("disk_cache_dir", _text, {"disk_cache": True}),
    "--prompt-cache-dir": ("disk_cache_dir", _text, {"disk_cache": True}),
    "--disk-cache-gb": ("disk_cache_gb", _integer(1), {"disk_cache": True}),
    "--prompt-cache-gb": ("disk_cache_gb", _integer(1), {"disk_cache": True}),
    "--wddm-evictable-budget": ("wddm_evictable_budget", None, {"wddm_evictable_budget": True}),
    "--default-max-tokens": ("default_max_tokens", _integer(1), {}),
    "--no-thinking": ("thinking", None, {"thinking": False}),
    "--preserve-thinking": ("preserve_thinking", None, {"preserve_thinking": True}),
    "--reasoning-effort": ("reasoning_effort", _one_of("low", "medium", "xhigh"), {}),
    "--thinking-effort": ("reasoning_effort", _one_of("low", "medium", "xhigh"), {}),
    "--temperature": ("temperature", _number(0, 2), {}),
    "--top-p": ("top_p", _number(0, 1), {}),
    "--top-k": ("top_k", _integer(0), {}),
    "--min-p": ("min_p", _number(0, 1), {}),
    "--presence-penalty": ("presence_penalty", _number(-2, 2), {}),
    "--frequency-penalty": ("frequency_penalty", _number(-2, 2), {}),
    "--seed": ("seed", _integer(0, (1 << 64) - 1), {}),
    "--greedy": ("greedy", None, {"greedy": True}),
}
_DEFAULTS: dict[str, Any] = {
    "host": "127.0.0.1",
    "port": 8080,
    "api_key": "",
    "cors": False,
    "ui": True,
    "model_id": "qwen3.8-27b",
    "max_request_mib": 384,
    "request_log_jsonl": None,
    "log_stats_interval_ms": 5000,
    "max_concurrency": 1,
    "max_pending_requests": 16,
    "pending_timeout_ms": 30000,
    "response_store_max_records": 1024,
    "response_store_max_mib": 256,
    "device": 0,
    "max_context": 8192,
    "kv_capacity": None,
    "kv_capacity_given": False,
    "prefill_chunk": 1024,
    "kv_dtype": "bf16",
    "spec": None,
    "draft_tokens": None,
    "lm_head_draft": False,
    "cuda_graph": True,
    "prefix_reuse": True,
    "vision": False,
    "vision_max_tokens": 8192,
    "max_media_items": 16,
    "max_video_pixels": 134217728,
    "disk_cache": False,
    "disk_cache_dir": None,
    "disk_cache_gb": 30,
    "wddm_evictable_budget": False,
    "default_max_tokens": 8192,
    "thinking": True,
    "preserve_thinking": False,
    "reasoning_effort": None,
    "temperature": None,
    "top_p": None,
    "top_k": None,
    "min_p": None,
    "presence_penalty": None,
    "frequency_penalty": None,
    "seed": None,
    "greedy": False,
}


def usage() -> str:
    """The help text: every flag once."""
    lines = ["usage: ninfer-serve <artifact.ninfer> [options]", "", "options:"]
    lines += [f"  {flag}{'' if parser is None else ' <value>'}" for flag, (_, parser, _) in _FLAGS.items()]
    return "\r\n".join(lines)


def parse(arguments: list[str]) -> Options:
    """Parse argv without the program. Raises UsageError."""
    if not arguments:
        raise UsageError("missing artifact path")
    if arguments[0].startswith("-"):
        raise UsageError(f"expected the artifact path first, found {arguments[0]}")
    options = Options(arguments[0], dict(_DEFAULTS))
    rest = list(arguments[1:])
    while rest:
        flag = rest.pop(0)
        if flag not in _FLAGS:
            raise UsageError(f"unknown argument: {flag}")
        name, parser, sets = _FLAGS[flag]
        if parser is not None:
            if not rest:
                raise UsageError(f"missing value for {flag}")
            text = rest.pop(0)
            try:
                options.values[name] = parser(text)
            except ValueError as error:
                raise UsageError(f"invalid value for {flag}: {text}") from error
        options.values |= sets
    _check(options)
    return options


def _check(options: Options) -> None:
    if options.spec is None and options.draft_tokens is not None:
        raise UsageError("--draft-tokens requires --spec")
    if options.spec is None and options.lm_head_draft:
        raise UsageError("--lm-head-draft requires --spec")
    if options.spec == "dflash" and options.vision:
        raise UsageError("--spec dflash cannot be combined with --vision")
    if not options.kv_capacity_given:
        options.values["kv_capacity"] = options.max_context
    elif options.kv_capacity is not None:
        most = options.max_concurrency * options.context_pages * PAGE_TOKENS
        if options.kv_capacity < options.max_context:
            raise UsageError("--kv-capacity must be at least --max-context")
        if options.kv_capacity > most:
            raise UsageError(f"--kv-capacity must not exceed concurrency x context ({most})")
