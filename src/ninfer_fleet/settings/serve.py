"""What ninfer-serve is told: one field per flag, named as the flag, each trap a refusal.

Ranges and defaults: the engine's own option parser; working limits: measured on the 4090 D.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import Field, field_validator, model_validator

from ninfer_fleet.server.vram import PAGE_TOKENS, cap_tokens
from ninfer_fleet.settings.trap import OwnFolder, Values, Word, refuse

KvDtype = Literal["bf16", "int8", "rk8v4", "rk4v4", "rk4v4-e8", "rk2v4-e8"]
LARGEST_SERVED_DRAFT = 7
NATIVE_POSITIONS = 262_144
# 64,491 tokens took 38.8 s on the 4090 D, so this many tokens a second.
PREFILL_TOKENS_PER_S = 1_667
WINDOWS_PORTS = {
    135: "RPC",
    139: "NetBIOS",
    445: "SMB",
    3389: "remote desktop",
    5985: "WinRM",
    5986: "WinRM",
    22: "SSH",
}
REFERENCES = ("env:", "file:", "cmd:")

# Beyond it the engine's own numbers may not hold them; each real limit is far below.
LARGEST = 2**31
Positive = Annotated[int, Field(gt=0, le=LARGEST)]
A_DAY_MS = 86_400_000


class Serve(Values):
    """The command line of ninfer-serve.

    None means: the flag is not given and the engine's default holds.
    """

    host: str = Field(
        default="0.0.0.0", description="all interfaces: the firewall rule limits it to Tailscale"
    )
    port: int = Field(
        default=8080, ge=1, le=65535, description="TCP; Windows may have reserved it: the preflight looks"
    )
    api_key: str | None = Field(
        default=None,
        description="a reference, env:NAME, file:PATH or cmd:COMMAND; never the key itself",
        repr=False,
    )
    cors: bool = Field(default=False, description="browsers of other origins may call")
    ui: bool | None = Field(default=None, description="the web page at /; the flag exists from about v1.1 on")
    model_id: Word | None = Field(default=None, description="name in /v1/models; None: the artifact's own")
    max_request_mib: Positive | None = Field(
        default=None, description="largest request body; None: 384, else 413"
    )
    request_log: bool = Field(
        default=True, description="requests.jsonl below logs; one record a request, argv redacted"
    )
    log_stats_interval_ms: int | None = Field(
        default=None,
        ge=0,
        le=A_DAY_MS,
        description="period of the throughput lines in the log; None: 5000, 0: off",
    )

    max_concurrency: int = Field(default=4, description="lanes 1..8; with max_context it caps the KV pool")
    max_pending_requests: Positive = Field(default=64, description="beyond active and pending: 429")
    pending_timeout_ms: Positive | None = Field(
        default=None, description="longest wait in the queue; None: 30000"
    )
    response_store_max_records: Positive | None = Field(
        default=None, description="entries kept for /v1/responses; None: 1024"
    )
    response_store_max_mib: Positive | None = Field(
        default=None, description="memory kept for /v1/responses; None: 256"
    )

    max_context: Positive = Field(
        default=131_072, description="tokens; 128K covers most agent work, 240K falls to 50 tok/s"
    )
    kv_capacity: int | Literal["auto"] | None = Field(
        default="auto",
        description="tokens of the pool; auto: all that fits with 1 GiB left, up to context x lanes",
    )
    prefill_chunk: Positive | None = Field(default=None, description="tokens, multiple of 128; None: 1024")
    kv_dtype: str = Field(
        default="rk4v4-e8", description="4-bit E8 lattice: 98.7 % KV fidelity; 2-bit has 96.2 %"
    )

    spec: Literal["mtp", "dflash"] | None = Field(
        default="mtp", description="speculative decoding: mtp, or dflash for the 35B model; None: off"
    )
    draft_tokens: int | None = Field(
        default=7, description="tokens drafted a round at low load; 7 is the most serve survives"
    )
    controller_draft_tokens: tuple[int, ...] = Field(
        default=(), description="depths that a controller may set meanwhile; the deploy leaves them alone"
    )
    lm_head_draft: bool = Field(default=True, description="draft through the small proposal head")
    cuda_graph: bool = Field(
        default=True, description="replay captured CUDA graphs; off only to look for a fault"
    )
    prefix_reuse: bool = Field(
        default=True, description="reuse the KV cache of a shared prefix; off only to look for a fault"
    )

    vision: bool = Field(default=False, description="start-time only; costs about 0.6 GiB")
    vision_max_tokens: Positive | None = Field(
        default=None,
        description="tokens of one picture; None: 8192; about 62 MiB of scratch for each 1024 above",
    )
    max_media_items: Positive | None = Field(
        default=None, description="pictures and videos in a request; None: 16; later builds only"
    )
    max_video_pixels: Positive | None = Field(
        default=None, description="pixels of a video; None: 134217728; later builds only"
    )

    disk_cache: bool = Field(default=True, description="prefix cache on NVMe: 38.8 s of prefill become 1.9 s")
    disk_cache_dir: OwnFolder | None = Field(
        default=r"C:\ninfer-cache", description="always given: the default is per user"
    )
    disk_cache_gb: Positive | None = Field(
        default=200, le=1_000_000, description="LRU quota; about 150 snapshots of 64K tokens"
    )

    wddm_evictable_budget: bool = Field(
        default=False,
        description="budget from total memory: on a card with a desktop the server dies silently",
    )

    default_max_tokens: Positive | None = Field(
        default=None, description="output limit of a request that names none; None: 8192"
    )
    thinking: bool = Field(default=True, description="let the model reason before it answers")
    preserve_thinking: bool = Field(
        default=True, description="keep reasoning of earlier turns, as the model expects"
    )
    reasoning_effort: Literal["low", "medium", "xhigh"] | None = Field(
        default=None, description="reasoning depth of a request that names none; None: the model's own"
    )
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=2,
        description="sampling default, 0..2; None: the model's; clients may send their own",
    )
    top_p: float | None = Field(
        default=None, ge=0, le=1, description="sampling default, 0..1; None: the model's"
    )
    top_k: int | None = Field(
        default=None, ge=0, le=LARGEST, description="sampling default, 0 = off; None: the model's"
    )
    min_p: float | None = Field(
        default=None, ge=0, le=1, description="sampling default, 0..1; None: the model's"
    )
    presence_penalty: float | None = Field(
        default=None, ge=-2, le=2, description="sampling default, -2..2; None: the model's"
    )
    frequency_penalty: float | None = Field(
        default=None, ge=-2, le=2, description="sampling default, -2..2; None: the model's"
    )
    seed: int | None = Field(
        default=None, ge=0, lt=2**64, description="sampling seed, for answers that repeat; None: random"
    )
    greedy: bool = Field(
        default=False, description="always the likeliest token; drafts are then accepted most often"
    )

    @field_validator("host")
    @classmethod
    def _address(cls, host: str) -> str:
        remedy = "0.0.0.0, 127.0.0.1 or the box's Tailscale address"
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            raise refuse(f"{host!r} is no IP address to listen on", remedy) from None
        # A zone (fe80::1%3) has a sign that cmd.exe does not take literally.
        if "%" in host or address.is_multicast or str(address) == "255.255.255.255":
            raise refuse(f"{host!r} is no address that a server can listen on", remedy)
        return host

    @field_validator("port")
    @classmethod
    def _free_port(cls, port: int) -> int:
        if port in WINDOWS_PORTS:
            raise refuse(
                f"port {port} belongs to {WINDOWS_PORTS[port]} on Windows", "use 8080 or another free port"
            )
        return port

    @field_validator("api_key")
    @classmethod
    def _reference(cls, reference: str | None) -> str | None:
        if reference is None:
            return None
        prefix = next((p for p in REFERENCES if reference.startswith(p)), None)
        if prefix is None or not reference[len(prefix) :].strip():
            raise refuse(
                "a key itself (or an empty text) stands where a reference belongs; it would end up "
                "in git and logs",
                "give env:NAME, file:PATH or cmd:COMMAND",
            )
        return reference

    @field_validator("max_concurrency")
    @classmethod
    def _lanes(cls, lanes: int) -> int:
        if not 1 <= lanes <= 8:
            raise refuse(f"{lanes} lanes: the engine takes 1 to 8", "4 is proven on the 48 GB card")
        return lanes

    @field_validator("max_context")
    @classmethod
    def _native(cls, tokens: int) -> int:
        if tokens > NATIVE_POSITIONS:
            raise refuse(
                f"{tokens} tokens exceed the model's {NATIVE_POSITIONS} native positions",
                "131072 is the sweet spot",
            )
        return tokens

    @field_validator("prefill_chunk")
    @classmethod
    def _chunk(cls, tokens: int | None) -> int | None:
        if tokens is not None and tokens % 128:
            raise refuse(f"{tokens} is no multiple of 128", "leave it out (1024) or give a multiple of 128")
        return tokens

    @field_validator("kv_dtype")
    @classmethod
    def _known_dtype(cls, dtype: str) -> str:
        if dtype not in get_args(KvDtype):
            raise refuse(
                f"{dtype!r} is no KV type of this engine (fp8, nvfp4 and others belong to other forks)",
                "use one of " + ", ".join(get_args(KvDtype)),
            )
        return dtype

    @field_validator("draft_tokens")
    @classmethod
    def _served_draft(cls, depth: int | None) -> int | None:
        return None if depth is None else _check_draft(depth)

    @field_validator("controller_draft_tokens")
    @classmethod
    def _served_drafts(cls, depths: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(_check_draft(depth) for depth in depths)

    @model_validator(mode="after")
    def _consistent(self) -> Serve:
        for error in self._contradictions():
            raise error
        return self

    def _contradictions(self) -> Iterator[Exception]:
        if self.api_key is None and not ipaddress.ip_address(self.host).is_loopback:
            yield refuse(
                f"host {self.host} without api_key is an open server for everyone who reaches the box",
                "declare api_key (env:NAME, file:PATH or cmd:COMMAND), or host 127.0.0.1",
            )
        if isinstance(self.kv_capacity, int):
            yield from self._capacity_contradictions(self.kv_capacity)
        if self.spec is None and (self.draft_tokens is not None or self.lm_head_draft):
            yield refuse(
                "draft_tokens and lm_head_draft need spec; the server would refuse to start",
                "declare spec 'mtp', or draft_tokens None and lm_head_draft False",
            )
        if self.spec is not None and self.draft_tokens is None:
            yield refuse(
                "spec without draft_tokens leaves the depth to the build", "declare draft_tokens, 1 to 7"
            )
        if self.spec == "dflash" and self.vision:
            yield refuse("the engine refuses vision together with dflash", "use spec 'mtp', or vision False")
        if not self.vision and (self.vision_max_tokens or self.max_media_items or self.max_video_pixels):
            yield refuse(
                "vision_max_tokens, max_media_items and max_video_pixels switch vision on by themselves",
                "declare vision True, or leave them out",
            )
        if self.disk_cache and (self.disk_cache_dir is None or self.disk_cache_gb is None):
            yield refuse(
                "a disk cache without folder and quota goes to the profile of whatever account "
                "runs the task, 30 GB",
                "declare disk_cache_dir and disk_cache_gb",
            )
        sampling = (self.temperature, self.top_p, self.top_k, self.min_p)
        if self.greedy and any(value is not None for value in sampling):
            yield refuse(
                "greedy together with sampling values is a contradiction", "drop the one or the others"
            )

    def _capacity_contradictions(self, capacity: int) -> Iterator[Exception]:
        if capacity < self.max_context:
            yield refuse(
                f"kv_capacity {capacity} is below max_context {self.max_context}; the server would "
                f"refuse to start",
                "declare 'auto', or at least max_context",
            )
        most = cap_tokens(self.max_context, self.max_concurrency)
        if capacity > most:
            yield refuse(
                f"kv_capacity {capacity} exceeds max_concurrency x max_context (rounded to pages of "
                f"{PAGE_TOKENS}) = "
                f"{most}, all that can ever be used",
                "declare 'auto', more lanes or more context",
            )

    def warnings(self) -> list[str]:
        """What works but will hurt, each with its remedy."""
        found = []
        prefill_ms = math.ceil(self.max_context / PREFILL_TOKENS_PER_S) * 1000
        timeout_ms = self.pending_timeout_ms or 30_000
        if timeout_ms < prefill_ms:
            found.append(
                f"serve.pending_timeout_ms: {timeout_ms} ms in the queue is shorter than one "
                f"prefill of max_context "
                f"(about {prefill_ms} ms); queued long prompts will answer 503. Remedy: {prefill_ms} or more"
            )
        if self.max_context > 200_000:
            found.append(
                f"serve.max_context: {self.max_context} tokens decode at about 50 tok/s and fill the memory. "
                "Remedy: 131072"
            )
        return found


def _check_draft(depth: int) -> int:
    if not 1 <= depth <= LARGEST_SERVED_DRAFT:
        raise refuse(
            f"draft depth {depth}: serve ends with cudaErrorGraphExecUpdateFailure at 8 and 9 "
            f"although its help says "
            "1..15 (CUDA graphs of the serve path are captured up to width 7)",
            "7 for one stream, 2 under load",
        )
    return depth
