"""How ninfer-serve divides the card: weights, fixed parts, and the KV pool it sizes from what is free.

The arithmetic is that of the engine's published figures (16 attention layers of 4 KV heads, pages of 64
tokens).
"""

from __future__ import annotations

from dataclasses import dataclass

from simbox.programs.serve_options import PAGE_TOKENS, Options

MIB = 1 << 20
GIB = 1 << 30
_BYTES_PER_LAYER_AND_HEAD = {
    "bf16": 1024,
    "int8": 528,
    "rk8v4": 400,
    "rk4v4": 272,
    "rk4v4-e8": 272,
    "rk2v4-e8": 208,
}
_LAYERS, _HEADS = 16, 4
HEADROOM_BYTES = GIB
_DESKTOP_FLOOR_BYTES = 512 * MIB


class DoesNotFit(Exception):
    """The pool does not hold one context; the text is the engine's message."""


@dataclass(frozen=True)
class Plan:
    """Sizes in bytes, and the resolved KV tokens."""

    weights: int
    fixed: int
    graph: int
    token: int
    tokens: int
    free_before: int
    free_after_weights: int

    @property
    def pool(self) -> int:
        """The KV pool."""
        return self.tokens * self.token

    @property
    def reservation(self) -> int:
        """What the runtime takes besides the weights."""
        return self.pool + self.fixed

    @property
    def free_after_startup(self) -> int:
        """What is left, by the engine's own count."""
        return self.free_after_weights - self.reservation


def token_bytes(options: Options) -> int:
    """KV bytes of one token; multi-token prediction has a layer of its own."""
    layers = _LAYERS + (1 if options.spec else 0)
    return _BYTES_PER_LAYER_AND_HEAD[options.kv_dtype] * layers * _HEADS


def weight_bytes(options: Options) -> int:
    """Uploaded weights: text, with the prediction layer and its head, with the vision tower."""
    text, prediction, vision = 15.92, 0.75, 0.28
    return int((text + (prediction if options.spec else 0) + (vision if options.vision else 0)) * GIB)


def graph_bytes(options: Options) -> int:
    """Allowance for CUDA graphs."""
    if not options.cuda_graph:
        return 0
    each = 64 if not options.spec else 256 if options.draft <= 4 else 320
    return int(each * options.max_concurrency * MIB)


def plan(options: Options, free: int, total: int) -> Plan:
    """Size everything from the free memory before start.

    Raises: DoesNotFit when the pool cannot hold one full context (and a page for each lane).
    """
    lanes = options.max_concurrency
    weights, graph, token = weight_bytes(options), graph_bytes(options), token_bytes(options)
    workspace_mib = 433 + 80 if options.vision else 210
    replay_mib = 13.64 * lanes * (options.draft + 1) / 8 if options.spec else 0
    fixed = int((2 * lanes * 146.81 + workspace_mib + replay_mib) * MIB) + graph
    after_weights = free - weights
    if options.wddm_evictable_budget:
        after_weights = max(after_weights, total - weights - _DESKTOP_FLOOR_BYTES)
    most = lanes * options.context_pages
    if options.kv_capacity is None:
        room = after_weights - HEADROOM_BYTES - fixed
        pages = min(most, max(0, room // (token * PAGE_TOKENS)))
    else:
        pages = -(-options.kv_capacity // PAGE_TOKENS)
        if pages * PAGE_TOKENS * token + fixed > after_weights:
            pages = max(0, (after_weights - fixed) // (token * PAGE_TOKENS))
            raise DoesNotFit(_message(options.kv_capacity, pages * PAGE_TOKENS, after_weights))
    if pages < max(options.context_pages, lanes):
        raise DoesNotFit(_message(options.max_context, pages * PAGE_TOKENS, after_weights))
    return Plan(weights, fixed, graph, token, pages * PAGE_TOKENS, free, after_weights)


def _message(wanted: int, possible: int, free: int) -> str:
    return (
        f"insufficient GPU memory for the KV cache: need {wanted} tokens, {possible} fit "
        f"in {max(0, free) / GIB:.2f} GiB free after weights"
    )
