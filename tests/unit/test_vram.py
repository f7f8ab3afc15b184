"""The memory formula against every published figure, within 2 %."""

from __future__ import annotations

import pytest

from ninfer_fleet.server import vram
from ninfer_fleet.server.vram import GIB, Calibration, Load

CARD_48 = 49140 * vram.MIB
CARD_24 = 24564 * vram.MIB
LEAN_GRAPHS = Calibration(graph_mib_short_draft=86)
EARLY_GRAPHS = Calibration(graph_mib_short_draft=1024, graph_mib_long_draft=1024)

RESERVATIONS_GIB = [
    # tokens, dtype, lanes, draft, vision, calibration, published GiB
    (524_288, "rk4v4-e8", 4, 7, False, Calibration(), 11.68),
    (524_288, "rk2v4-e8", 4, 7, False, Calibration(), 9.56),
    (1_516_544, "rk4v4-e8", 4, 7, False, Calibration(), 28.77),
    (163_840, "rk4v4-e8", 1, 7, True, Calibration(), 3.95),
    (204_800, "rk4v4-e8", 1, 7, True, Calibration(), 4.66),
    (229_376, "rk4v4-e8", 1, 7, True, Calibration(), 5.08),
    (262_144, "rk4v4-e8", 1, 3, False, LEAN_GRAPHS, 5.08),
    (262_144, "rk2v4-e8", 1, 3, False, LEAN_GRAPHS, 4.01),
    (172_032, "int8", 1, 3, False, LEAN_GRAPHS, 6.31),
    (200_000, "rk4v4-e8", 1, 4, False, EARLY_GRAPHS, 4.92),
    (330_000, "rk2v4-e8", 1, 4, False, EARLY_GRAPHS, 5.83),
]


@pytest.mark.parametrize(
    ("tokens", "dtype", "lanes", "draft", "vision", "calibration", "published_gib"), RESERVATIONS_GIB
)
def test_reservation(
    tokens: int,
    dtype: str,
    lanes: int,
    draft: int,
    vision: bool,
    calibration: Calibration,
    published_gib: float,
) -> None:
    load = Load(
        context_tokens=tokens // lanes, lanes=lanes, kv_dtype=dtype, draft_tokens=draft, vision=vision
    )
    reservation = tokens * vram.bytes_per_token(dtype, draft > 0) + vram.fixed_bytes(load, calibration)
    assert reservation / GIB == pytest.approx(published_gib, rel=0.02)


CEILINGS = [
    # dtype, draft, published tokens (24 GB card, one lane, evictable budget)
    ("rk2v4-e8", 0, 567_000),
    ("rk4v4-e8", 0, 433_000),
    ("rk8v4", 0, 294_000),
    ("int8", 0, 223_000),
    ("rk2v4-e8", 4, 462_000),
    ("rk4v4-e8", 4, 352_000),
    ("rk8v4", 4, 239_000),
    ("int8", 4, 181_000),
]


@pytest.mark.parametrize(("dtype", "draft", "published_tokens"), CEILINGS)
def test_ceiling_on_24_gb_with_the_evictable_budget(dtype: str, draft: int, published_tokens: int) -> None:
    load = Load(
        context_tokens=1_048_576,
        lanes=1,
        kv_dtype=dtype,
        draft_tokens=draft,
        evictable_budget=True,
        capacity_tokens=1_048_576,
    )
    result = vram.plan(load, free_bytes=CARD_24 - 3 * GIB, total_bytes=CARD_24)
    assert result.pool_tokens == pytest.approx(published_tokens, rel=0.02)


def test_slopes_of_a_token() -> None:
    assert pytest.approx(vram.RK8V4_VALUE_GROUPS_OF_32 * vram.KV_HEADS * 17, rel=0.02) == 27_719
    assert pytest.approx(vram.bytes_per_token("int8", True), rel=0.02) == 35_900
    assert vram.bytes_per_token("bf16", False) == 65_536
    assert vram.bytes_per_token("bf16", True) == 69_632


@pytest.mark.parametrize(
    ("tokens", "per_token", "published_gib"),
    [
        (171_648, vram.bytes_per_token("int8", False), 5.40),
        (226_560, vram.RK8V4_VALUE_GROUPS_OF_32 * vram.KV_HEADS * vram.FULL_ATTENTION_LAYERS, 5.51),
    ],
)
def test_payload(tokens: int, per_token: int, published_gib: float) -> None:
    assert tokens * per_token / GIB == pytest.approx(published_gib, rel=0.02)


AUTO_ON_48_GB = [
    # free GiB before the start, dtype, tokens that fit without the cap, starts
    (22.5, "int8", 65_024, False),
    (22.5, "rk8v4", 85_824, False),
    (22.5, "rk4v4-e8", 126_208, False),
    (22.5, "rk2v4-e8", 165_056, True),
    (30, "int8", 289_280, True),
    (30, "rk8v4", 381_888, True),
    (30, "rk4v4-e8", 561_600, True),
    (30, "rk2v4-e8", 734_400, True),
    (40, "int8", 588_352, True),
    (40, "rk8v4", 776_640, True),
    (40, "rk4v4-e8", 1_142_144, True),
    (40, "rk2v4-e8", 1_493_568, True),
    (45, "int8", 737_856, True),
    (45, "rk8v4", 974_016, True),
    (45, "rk4v4-e8", 1_432_384, True),
    (45, "rk2v4-e8", 1_873_152, True),
]


@pytest.mark.parametrize(("free_gib", "dtype", "fits", "starts"), AUTO_ON_48_GB)
def test_auto_capacity_on_48_gb(free_gib: float, dtype: str, fits: int, starts: bool) -> None:
    load = Load(context_tokens=131_072, lanes=4, kv_dtype=dtype, draft_tokens=7)
    result = vram.plan(load, free_bytes=round(free_gib * GIB), total_bytes=CARD_48)
    assert result.pool_tokens == pytest.approx(min(fits, 524_288), rel=0.02)
    assert result.starts is starts


def test_22_gib_free_does_not_start_and_29_4_gives_the_full_pool() -> None:
    load = Load(context_tokens=131_072, lanes=4, kv_dtype="rk4v4-e8", draft_tokens=7)
    assert not vram.plan(load, round(22.5 * GIB), CARD_48).starts
    full = vram.plan(load, round(29.4 * GIB), CARD_48)
    assert full.pool_tokens == full.cap_tokens == 524_288
    assert full.needed_to_start_bytes / GIB == pytest.approx(22.6, rel=0.02)
    assert full.needed_for_cap_bytes / GIB == pytest.approx(29.4, rel=0.02)


def test_an_explicit_capacity_is_checked_without_headroom() -> None:
    auto = Load(context_tokens=131_072, lanes=1, kv_dtype="int8", draft_tokens=7)
    fixed = Load(context_tokens=131_072, lanes=1, kv_dtype="int8", draft_tokens=7, capacity_tokens=131_072)
    enough_without_headroom = vram.plan(fixed, 0, CARD_48).needed_to_start_bytes + vram.MIB
    assert vram.plan(fixed, enough_without_headroom, CARD_48).starts
    assert not vram.plan(auto, enough_without_headroom, CARD_48).starts


def test_pool_is_whole_pages_and_context_is_rounded_up() -> None:
    assert vram.cap_tokens(100, 3) == 384
    load = Load(context_tokens=131_072, lanes=4, kv_dtype="int8", draft_tokens=7)
    assert vram.plan(load, 30 * GIB, CARD_48).pool_tokens % vram.PAGE_TOKENS == 0
