"""ninfer-serve.exe: starts, fails and serves as the real one does, on the address of its box."""

from __future__ import annotations

import ntpath
import threading
from pathlib import Path
from typing import Any

from simbox.programs.invocation import Invocation
from simbox.programs.ninja import DLLS
from simbox.programs.serve_engine import Engine
from simbox.programs.serve_http import Server
from simbox.programs.serve_log import RequestLog, redacted
from simbox.programs.serve_memory import GIB, HEADROOM_BYTES, DoesNotFit, Plan, plan, weight_bytes
from simbox.programs.serve_options import Options, UsageError, parse, usage

DLL_NOT_FOUND = 0xC0000135
FAIL_FAST = 0xC0000409
ABORTED = 3
MOST_DRAFT_TOKENS = 7  # one more, and the verification graph cannot be updated on the serve path
_CONTAINER_VERSION = 2


class _Exit(Exception):
    def __init__(self, code: int, *lines: str) -> None:
        super().__init__(code)
        self.code = code
        self.lines = lines


def run(invocation: Invocation) -> int:
    """Exit codes: 0 help, 1 configuration, artifact or bind fault, 3 CUDA fault, 0xC0000135 missing DLL,
    0xC0000409 the silent death of an oversubscribed card."""
    if any(
        not invocation.box.filesystem.exists(f"{ntpath.dirname(invocation.path)}\\{name}") for name in DLLS
    ):
        return DLL_NOT_FOUND
    if invocation.arguments[:1] in (["-h"], ["--help"]):
        invocation.out(usage())
        return 0
    try:
        options = parse(invocation.arguments)
    except UsageError as error:
        invocation.err(f"error: {error}")
        invocation.err(usage())
        return 1
    try:
        return _Serving(invocation, options).run()
    except _Exit as end:
        for line in end.lines:
            invocation.err(line)
        return end.code


class _Serving:
    """One start of the server, from bind to end."""

    def __init__(self, invocation: Invocation, options: Options) -> None:
        self._invocation = invocation
        self._options = options
        self._box = invocation.box
        self._log = RequestLog(None)

    def run(self) -> int:
        self._log = self._open_log()
        server = self._bind()
        try:
            sizes = self._load(server)
            self._announce(sizes)
            thread = threading.Thread(target=server.serve, name="ninfer-serve http", daemon=True)
            thread.start()
            self._invocation.stopping.wait()
            server.engine.wake()
            server.stop()
            thread.join()
        finally:
            server.server_close()
            self._box.windows.network.closed(self._options.host, self._options.port)
            self._box.windows.gpu.release(self._invocation.pid)
            self._log.close()
        return 0

    def _host_path(self, path: str) -> Path:
        return self._box.filesystem.host(path, self._invocation.cwd)

    def _open_log(self) -> RequestLog:
        name = self._options.request_log_jsonl
        if name is None:
            return RequestLog(None)
        path = self._host_path(name)
        if path == self._host_path(self._options.artifact):
            raise _Exit(1, "error: --request-log-jsonl must not be the artifact", usage())
        try:
            return RequestLog(path)
        except OSError as error:
            raise _Exit(1, f"error: cannot open request log {name}: {error.strerror}") from error

    def _bind(self) -> Server:
        options, box = self._options, self._box
        own = {"0.0.0.0", "127.0.0.1", "localhost", "::", box.address}
        own |= {text for row in box.windows.network.connections() for text in row["Addresses"]}
        failed = _Exit(1, f"failed to bind {options.host}:{options.port}")
        if options.host not in own or box.windows.system.is_excluded_port(options.port):
            raise failed
        cache = (
            self._host_path(options.disk_cache_dir) if options.disk_cache and options.disk_cache_dir else None
        )
        if options.disk_cache and cache is None:
            cache = self._host_path("C:\\Users\\Public\\AppData\\Local\\ninfer\\cache")
        speed = float(box.profile.get("serve", "tokens_per_second", default=2000))
        engine = Engine(options, speed, self._invocation.stopping, cache)
        try:
            server = Server(box.address, options.port, options, engine, self._log)
        except OSError as error:
            raise failed from error
        box.windows.network.listen(options.host, options.port, self._invocation.pid)
        return server

    def _load(self, server: Server) -> Plan:
        err, options, gpu = self._invocation.err, self._options, self._box.windows.gpu
        err("loading model...")
        self._check_artifact()
        device = self._check_gpu()
        total = int(device["memory_mib"]) << 20
        free = gpu.free_bytes(options.device)
        weights = weight_bytes(options)
        load_s = float(self._box.profile.get("serve", "load_seconds", default=0.3))
        for percent in (25, 50, 75, 100):
            if self._invocation.stopping.wait(load_s / 4):
                raise _Exit(1)
            if options.wddm_evictable_budget and device["display_attached"] and percent > 50:
                raise _Exit(FAIL_FAST)  # paged out from under the desktop: nothing is printed
            if weights > free and not options.wddm_evictable_budget:
                raise _Exit(ABORTED, "src/core/device_memory.cpp:88: CUDA check failed: out of memory")
            err(f"weights {percent:3d}% ({weights * percent / 100 / GIB:.2f} / {weights / GIB:.2f} GiB)")
            gpu.allocate(self._invocation.pid, options.device, weights * percent // 100)
        try:
            sizes = plan(options, free, total)
        except DoesNotFit as error:
            raise _Exit(1, f"error: {error}") from error
        gpu.allocate(self._invocation.pid, options.device, sizes.weights + sizes.reservation)
        err(
            f"kv capacity {sizes.tokens} tokens ({sizes.tokens // 64} pages), free after weights "
            f"{sizes.free_after_weights / GIB:.2f} GiB, "
            f"free after startup {sizes.free_after_startup / GIB:.2f} GiB, "
            f"headroom {HEADROOM_BYTES / GIB:.2f} GiB, graphs {sizes.graph >> 20} MiB"
        )
        err(f"model loaded in {load_s:.1f} s")
        err("warming up...")
        if options.draft > MOST_DRAFT_TOKENS and options.cuda_graph:
            raise _Exit(
                ABORTED,
                "src/runtime/cuda_graph.cpp:141: CUDA check failed: "
                "cudaErrorGraphExecUpdateFailure (update result 2)",
            )
        return sizes

    def _check_artifact(self) -> None:
        path = self._host_path(self._options.artifact)
        if not path.is_file():
            raise _Exit(1, f"error: cannot open artifact {self._options.artifact}", usage())
        with path.open("rb") as file:
            magic = file.read(8)
        if magic[:7] != b"NINFER\0":
            raise _Exit(1, "error: artifact: bad magic")
        if magic[7] != _CONTAINER_VERSION:
            raise _Exit(1, f"error: artifact: bad magic (container version {magic[7]})")
        if self._options.spec == "dflash":
            raise _Exit(1, "error: --spec dflash is not supported by target qwen3_8_27b")

    def _check_gpu(self) -> dict[str, Any]:
        state = self._box.windows.gpu.state()
        place = "src/core/device.cpp:37: CUDA check failed: "
        if not state.get("driver_loaded", True):
            raise _Exit(ABORTED, place + "no CUDA-capable device is detected")
        cuda = self._box.profile.get("toolchain", "cuda", "version", default="13.0")
        if int(state["cuda_version"].split(".")[0]) < int(cuda.split(".")[0]):
            raise _Exit(ABORTED, place + "CUDA driver version is insufficient for CUDA runtime version")
        if self._options.device >= len(state["devices"]):
            raise _Exit(ABORTED, place + "invalid device ordinal")
        device: dict[str, Any] = state["devices"][self._options.device]
        if device["compute_capability"] not in ([8, 6], [8, 9]):
            raise _Exit(1, "error: this build supports SM 8.6 and 8.9 only")
        return device

    def _announce(self, sizes: Plan) -> None:
        options, state = self._options, self._box.windows.gpu.state()
        device = state["devices"][options.device]
        auth = "bearer" if options.api_key else "disabled"
        self._invocation.err(
            f"listening on http://{options.host}:{options.port} (model id {options.model_id}, auth: {auth})"
        )
        self._log.write(
            "server_start",
            server={
                "host": options.host,
                "port": options.port,
                "model_id": options.model_id,
                "auth": auth,
                "process_id": self._invocation.pid,
            },
            artifact={
                "path": options.artifact,
                "size_bytes": self._host_path(options.artifact).stat().st_size,
                "target": "qwen3_8_27b",
                "weights_id": "groupwise-int",
                "load_seconds": float(self._box.profile.get("serve", "load_seconds", default=0.3)),
            },
            engine={
                "max_context": options.max_context,
                "kv_capacity_mode": "auto" if options.kv_capacity is None else "explicit",
                "kv_capacity_tokens": sizes.tokens,
                "max_concurrency": options.max_concurrency,
                "kv_cache": options.kv_dtype,
                "vision": options.vision,
                "speculative": options.spec,
                "draft_window": options.draft,
                "proposal_head": options.lm_head_draft,
            },
            sampling={"temperature": options.temperature, "top_p": options.top_p, "top_k": options.top_k},
            memory={
                "weights_bytes": sizes.weights,
                "runtime_reservation_bytes": sizes.reservation,
                "kv_capacity_increment_bytes": sizes.token * 64,
                "kv_payload_bytes": sizes.pool,
                "minimum_runtime_reservation_bytes": sizes.fixed + options.context_pages * 64 * sizes.token,
                "available_after_weights_bytes": sizes.free_after_weights,
                "available_after_startup_bytes": sizes.free_after_startup,
                "headroom_bytes": HEADROOM_BYTES,
                "graph_allowance_bytes": sizes.graph,
            },
            environment={
                "gpu_name": device["name"],
                "gpu_uuid": device["uuid"],
                "total_memory_bytes": int(device["memory_mib"]) << 20,
                "cuda_driver_version": state["cuda_version"],
            },
            argv=redacted(list(self._invocation.argv)),
        )
