"""How much video memory NInfer takes, computed before it starts: pure arithmetic, no I/O.

Source of every constant: the engine's own layout code and published figures of its users
(docs/facts/ninfer.md#memory). Geometry of the 27B model: 16 full-attention layers, 4 KV heads, head size 256,
48 GDN layers, pages of 64 tokens; MTP adds one KV layer. The unit tests hold each
published row to within 2 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

MIB = 1024**2
GIB = 1024**3
PAGE_TOKENS = 64
FULL_ATTENTION_LAYERS = 16
MTP_LAYERS = 1
KV_HEADS = 4

# Bytes a token takes in one layer and head: keys and values with their scales.
BYTES_PER_TOKEN_LAYER_HEAD = {
    "bf16": 1024,
    "int8": 528,
    "rk8v4": 400,
    "rk4v4": 272,
    "rk4v4-e8": 272,
    "rk2v4-e8": 208,
}
# rk8v4 in a build that scales values in groups of 32 instead of 64.
RK8V4_VALUE_GROUPS_OF_32 = 408

GDN_STATE_MIB_PER_SLOT = 146.81  # two slots a lane
REPLAY_MIB_PER_LANE = 13.64  # at 8 positions (draft 7 plus the sampled one)
WDDM_FLOOR_MIB = 512  # what the evictable-budget flag leaves to the desktop

# What the card must hold of the weights (not the size of the file): it depends on the options.
WEIGHTS_TEXT_GIB = 15.92
WEIGHTS_MTP_GIB = 16.67
WEIGHTS_VISION_GIB = 16.95


@dataclass(frozen=True)
class Calibration:
    """Figures that changed between engine versions.

    Attributes: graph_mib_no_spec, graph_mib_short_draft (draft 1..4), graph_mib_long_draft (5..): CUDA graphs
    per lane; workspace_text_mib, workspace_vision_mib: scratch at prefill chunk 1024; headroom_mib: what
    `--kv-capacity auto` leaves free.
    """

    graph_mib_no_spec: float = 64
    graph_mib_short_draft: float = 256
    graph_mib_long_draft: float = 320
    workspace_text_mib: float = 210
    workspace_vision_mib: float = 433 + 80
    headroom_mib: float = 1024


@dataclass(frozen=True)
class Load:
    """What is asked of the engine.

    Attributes: context_tokens (--max-context), lanes (--max-concurrency), kv_dtype, capacity_tokens
    (--kv-capacity;
    None: auto), draft_tokens (0: no speculation), vision, evictable_budget (--wddm-evictable-budget),
    weights_gib (None: by options).
    """

    context_tokens: int
    lanes: int
    kv_dtype: str
    capacity_tokens: int | None = None
    draft_tokens: int = 0
    vision: bool = False
    evictable_budget: bool = False
    weights_gib: float | None = None


@dataclass(frozen=True)
class Plan:
    """What the engine will do with a given amount of free memory.

    Attributes: weights_bytes, fixed_bytes (states, graphs, scratch), bytes_per_token, cap_tokens (context x
    lanes, the most that can ever be used), pool_tokens (what fits and is wanted), reservation_bytes (pool +
    fixed), starts, needed_to_start_bytes, needed_for_cap_bytes (free memory before the start), left_bytes
    (free after the start; below the headroom the desktop has to give way).
    """

    weights_bytes: int
    fixed_bytes: int
    bytes_per_token: int
    cap_tokens: int
    pool_tokens: int
    reservation_bytes: int
    starts: bool
    needed_to_start_bytes: int
    needed_for_cap_bytes: int
    left_bytes: int


def bytes_per_token(kv_dtype: str, speculative: bool) -> int:
    """Bytes of KV cache for one token. Raises KeyError for an unknown kv_dtype."""
    layers = FULL_ATTENTION_LAYERS + (MTP_LAYERS if speculative else 0)
    return BYTES_PER_TOKEN_LAYER_HEAD[kv_dtype] * KV_HEADS * layers


def cap_tokens(context_tokens: int, lanes: int) -> int:
    """The most tokens the pool may hold: lanes times the page-rounded context (layouts_impl.h,
    maximum_pages64)."""
    return lanes * ceil(context_tokens / PAGE_TOKENS) * PAGE_TOKENS


def weights_bytes(load: Load) -> int:
    """Bytes of weights on the card for these options."""
    if load.weights_gib is not None:
        return round(load.weights_gib * GIB)
    if load.vision:
        return round(WEIGHTS_VISION_GIB * GIB)
    return round((WEIGHTS_MTP_GIB if load.draft_tokens else WEIGHTS_TEXT_GIB) * GIB)


def fixed_bytes(load: Load, calibration: Calibration = Calibration()) -> int:
    """Bytes beside weights and pool: GDN states, CUDA graphs, replay buffers, scratch."""
    if not load.draft_tokens:
        graph, replay = calibration.graph_mib_no_spec, 0.0
    else:
        short = load.draft_tokens <= 4
        graph = calibration.graph_mib_short_draft if short else calibration.graph_mib_long_draft
        replay = REPLAY_MIB_PER_LANE * (load.draft_tokens + 1) / 8
    scratch = calibration.workspace_vision_mib if load.vision else calibration.workspace_text_mib
    return round((load.lanes * (2 * GDN_STATE_MIB_PER_SLOT + graph + replay) + scratch) * MIB)


def plan(
    load: Load,
    free_bytes: int,
    total_bytes: int,
    calibration: Calibration = Calibration(),
) -> Plan:
    """What becomes of `load` on a card.

    Args:
        load: what is asked.
        free_bytes: free video memory before the start (without what a running server of ours holds).
        total_bytes: memory of the card; used only with the evictable budget, which counts from the total.
        calibration: figures of the engine version.
    """
    weights = weights_bytes(load)
    fixed = fixed_bytes(load, calibration)
    per_token = bytes_per_token(load.kv_dtype, load.draft_tokens > 0)
    cap = cap_tokens(load.context_tokens, load.lanes)
    # An explicit capacity is taken at its word: the engine keeps its headroom only for `auto`.
    headroom = round(calibration.headroom_mib * MIB) if load.capacity_tokens is None else 0
    after_weights = free_bytes - weights
    if load.evictable_budget:
        after_weights = max(after_weights, total_bytes - weights - WDDM_FLOOR_MIB * MIB)
    room = max(0, after_weights - headroom - fixed) // per_token
    fits = room // PAGE_TOKENS * PAGE_TOKENS
    wanted = cap if load.capacity_tokens is None else load.capacity_tokens
    least = max(load.context_tokens, load.lanes * PAGE_TOKENS)
    if load.capacity_tokens is not None:
        least = max(least, load.capacity_tokens)
    pool = min(wanted, fits)
    base = weights + fixed + headroom
    return Plan(
        weights_bytes=weights,
        fixed_bytes=fixed,
        bytes_per_token=per_token,
        cap_tokens=cap,
        pool_tokens=pool,
        reservation_bytes=pool * per_token + fixed,
        starts=fits >= least,
        needed_to_start_bytes=base + least * per_token,
        needed_for_cap_bytes=base + wanted * per_token,
        left_bytes=free_bytes - weights - fixed - pool * per_token,
    )
