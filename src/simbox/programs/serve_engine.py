"""The engine behind ninfer-serve's routes: lanes, queue, counters, prefix cache and made-up text at a set
speed.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simbox.programs.serve_options import PAGE_TOKENS, Options

_WORDS = ("The ", "box ", "is ", "simulated, ", "and ", "so ", "is ", "this ", "answer. ")
_THOUGHT = ("A ", "short ", "thought. ")
_LONGEST_ANSWER_TOKENS = 512
_PREFILL_PER_DECODE = 20
_BATCH_TOKENS = 16


class Refused(Exception):
    """A request that the engine does not take."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass
class Counters:
    """What /metrics tells."""

    prompt_tokens: int = 0
    prompt_seconds: float = 0.0
    predicted_tokens: int = 0
    predicted_seconds: float = 0.0
    requests: int = 0
    cache_hit_tokens: int = 0
    draft_tokens: int = 0
    draft_accepted: int = 0


@dataclass
class Job:
    """One request on its way."""

    prompt_tokens: int
    max_tokens: int
    thinking: bool
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    cached_tokens: int = 0
    completion_tokens: int = 0
    finish_reason: str = "stop"
    started: float = field(default_factory=time.monotonic)
    ttft_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    drafted: int = 0
    accepted: int = 0


def count_tokens(text: str) -> int:
    """About four bytes a token."""
    return max(1, -(-len(text.encode()) // 4))


class Engine:
    """A running model.

    Args:
        tokens_per_second: decode speed of one lane. stopping: set when the process ends.
        cache_folder: host folder of the disk cache, or None.
    """

    def __init__(
        self, options: Options, tokens_per_second: float, stopping: threading.Event, cache_folder: Path | None
    ) -> None:
        self.options = options
        self.counters = Counters()
        self.active: list[Job] = []
        self.waiting = 0
        self._speed = tokens_per_second
        self._stopping = stopping
        self._changed = threading.Condition()
        self._seen: set[str] = set()
        self._cache = cache_folder
        if cache_folder:
            (cache_folder / "manifests").mkdir(parents=True, exist_ok=True)
            self._seen = {path.stem for path in (cache_folder / "manifests").glob("*.json")}

    def admit(self, prompt: str, max_tokens: int | None, thinking: bool) -> Job:
        """Take a lane, waiting in the queue for it. Raises Refused."""
        tokens = count_tokens(prompt)
        if tokens >= self.options.max_context:
            raise Refused(
                400,
                "context_length_exceeded",
                f"{tokens} prompt tokens, the context is {self.options.max_context}",
            )
        wanted = max_tokens or self.options.default_max_tokens
        job = Job(tokens, min(wanted, self.options.max_context - tokens), thinking)
        with self._changed:
            free = len(self.active) < self.options.max_concurrency and not self.waiting
            if not free and self.waiting >= self.options.max_pending_requests:
                raise Refused(429, "server_overloaded", "all lanes and the queue are full")
            self.waiting += 1
            try:
                got = self._changed.wait_for(
                    lambda: self._stopping.is_set() or len(self.active) < self.options.max_concurrency,
                    self.options.pending_timeout_ms / 1000,
                )
            finally:
                self.waiting -= 1
            if not got:
                raise Refused(503, "request_queue_timeout", "no lane became free in time")
            self.active.append(job)
            self.counters.requests += 1
        job.cached_tokens = self._cached(prompt, tokens)
        return job

    def generate(self, job: Job) -> Iterator[tuple[str, str]]:
        """Pieces of text as ("reasoning" | "content", text); ends early when the process stops.

        The lane is given back when the iterator is exhausted or closed.
        """
        computed = job.prompt_tokens - job.cached_tokens
        try:
            begun = time.monotonic()
            self._stopping.wait(computed / (self._speed * _PREFILL_PER_DECODE))
            job.prefill_s = time.monotonic() - begun
            job.ttft_s = time.monotonic() - job.started
            self._count_prefill(job, computed)
            yield from self._decode(job)
        finally:
            self._finish(job)

    def _decode(self, job: Job) -> Iterator[tuple[str, str]]:
        length = min(job.max_tokens, _LONGEST_ANSWER_TOKENS)
        job.finish_reason = "length" if length == job.max_tokens else "stop"
        thought = list(_THOUGHT[:length]) if job.thinking else []
        begun = time.monotonic()
        for index in range(length):
            if index % _BATCH_TOKENS == 0 and self._stopping.wait(
                min(_BATCH_TOKENS, length - index) / self._speed
            ):
                job.finish_reason = "cancelled"
                return
            job.completion_tokens += 1
            job.decode_s = time.monotonic() - begun
            if index < len(thought):
                yield "reasoning", thought[index]
            else:
                yield "content", _WORDS[(index - len(thought)) % len(_WORDS)]

    def metrics(self) -> str:
        """Text exposition without HELP and TYPE lines."""
        counters = self.counters
        values: dict[str, float] = {
            "llamacpp:prompt_tokens_total": counters.prompt_tokens,
            "llamacpp:prompt_seconds_total": round(counters.prompt_seconds, 6),
            "llamacpp:tokens_predicted_total": counters.predicted_tokens,
            "llamacpp:tokens_predicted_seconds_total": round(counters.predicted_seconds, 6),
            "ninfer:requests_total": counters.requests,
            "ninfer:prefix_cache_hit_tokens_total": counters.cache_hit_tokens,
            "ninfer:draft_tokens_total": counters.draft_tokens,
            "ninfer:draft_accepted_tokens_total": counters.draft_accepted,
            "llamacpp:requests_processing": min(len(self.active), self.options.max_concurrency),
            "llamacpp:requests_deferred": self.waiting,
        }
        return "".join(f"{name} {value}\n" for name, value in values.items())

    def slots(self) -> list[dict[str, Any]]:
        """One object for each lane."""
        with self._changed:
            active = list(self.active)
        return [
            {
                "id": lane,
                "is_processing": lane < len(active),
                "n_ctx": self.options.max_context,
                "n_prompt_tokens": active[lane].prompt_tokens if lane < len(active) else 0,
                "n_prompt_tokens_cached": active[lane].cached_tokens if lane < len(active) else 0,
                "speculative": self.options.spec is not None,
            }
            for lane in range(self.options.max_concurrency)
        ]

    def wake(self) -> None:
        """Let waiting requests see that the process stops."""
        with self._changed:
            self._changed.notify_all()

    def _cached(self, prompt: str, tokens: int) -> int:
        if not self.options.prefix_reuse:
            return 0
        key = hashlib.sha256(prompt.encode()).hexdigest()
        pages = tokens // PAGE_TOKENS
        with self._changed:
            if key in self._seen:
                return pages * PAGE_TOKENS
            self._seen.add(key)
        if self._cache and pages:
            (self._cache / "manifests" / f"{key}.json").write_text(json.dumps({"pages": pages}))
        return 0

    def _count_prefill(self, job: Job, computed: int) -> None:
        with self._changed:
            self.counters.prompt_tokens += computed
            self.counters.prompt_seconds += job.prefill_s
            self.counters.cache_hit_tokens += job.cached_tokens

    def _finish(self, job: Job) -> None:
        with self._changed:
            if job not in self.active:
                return
            self.active.remove(job)
            if self.options.spec and job.completion_tokens:
                job.accepted = job.completion_tokens // 2
                job.drafted = (job.completion_tokens - job.accepted) * self.options.draft
            self.counters.predicted_tokens += job.completion_tokens
            self.counters.predicted_seconds += job.decode_s
            self.counters.draft_tokens += job.drafted
            self.counters.draft_accepted += job.accepted
            self._changed.notify_all()
