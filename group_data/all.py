"""What is declared for every box; a group (rtx4090d.py) or a box in the inventory may override single values.

Checked by ninfer_fleet.settings, where every field tells its unit, its range and the trap behind it.
"""

layout = {
    "root": r"C:\ninfer",  # short: the build appends long names
}

engine = {
    "repository": "https://github.com/UDPSendToFailed/ninfer-4090.git",
    "commit": "3d11fd64",  # the production figures were measured with it
    "cuda": "13.3",  # with driver 616.56
    "cuda_architecture": 89,  # Ada; the engine's own default is 86
    "vcpkg_root": r"C:\vcpkg",
    "container_versions": (2,),  # this commit reads no v3 artifact
}

model = {
    "file_name": "qwen3_8_27b.ninfer",
    # A pinned revision: the file of this name on the main branch became two other formats since.
    "url": "https://huggingface.co/neroued/Qwen3.8-27B-NInfer/resolve/"
    "3526913004b1cf552cb57b88d6a5c6f5e4a89a70/qwen3_8_27b.ninfer",
    "size_bytes": 18_210_531_328,
    # An unrelated artifact has the same size: only the digest tells them apart.
    "sha256": "eec39564993d6e9c7d5e383382a760f093465c9d163ec9a1bd6b80199514bf3e",
    "container_version": 2,
}

serve = {
    "host": "0.0.0.0",  # the firewall rule below limits it to Tailscale
    "port": 8080,
    "api_key": "env:NINFER_API_KEY",  # a reference; the key is never in git, in the .bat or in a log
    "max_context": 131_072,  # 128K covers most agent work; 240K falls to 50 tok/s
    "max_pending_requests": 64,
    "pending_timeout_ms": 180_000,  # the default of 30 s is shorter than one 64K prefill (38.8 s)
    "spec": "mtp",
    "lm_head_draft": True,
    "preserve_thinking": True,
    "disk_cache": True,  # 64K prefix again: 1.9 s instead of 38.8 s
    "disk_cache_dir": r"C:\ninfer-cache",  # NVMe only: DirectStorage
    "disk_cache_gb": 200,
    "wddm_evictable_budget": False,  # on a card with a desktop the server dies without a word
    "request_log": True,
}

network = {
    "allowed": ("100.64.0.0/10", "fd7a:115c:a1e0::/48"),  # Tailscale, both address families
    "disable_query_user": False,  # True: switch off what a first-listen prompt of Windows left for the server
}

task = {
    "path": r"\NInferServe",
    "logon_type": "S4U",  # runs with nobody logged on; no window that somebody could close
    "start_at": ("boot",),
    "watchdog_minutes": 1,
    "priority": 4,  # the default, 7, lowers CPU, disk and memory priority
}
