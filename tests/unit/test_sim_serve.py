"""ninfer-serve on a simulated box: its command line, its ways to die, its memory and its HTTP surface."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sim_programs import Run

from simbox import mirror, programs
from simbox.box import Box
from simbox.programs.ninja import DLLS
from simbox.programs.serve_memory import GIB, DoesNotFit, plan
from simbox.programs.serve_options import UsageError, parse, usage

EXE = "C:\\ninfer\\ninfer-serve.exe"
MODEL = "C:\\models\\qwen3_8_27b.ninfer"
PRODUCTION = [
    "--max-context", "131072", "--kv-dtype", "rk4v4-e8", "--kv-capacity", "auto", "--max-concurrency", "4",
    "--spec", "mtp", "--draft-tokens", "7", "--lm-head-draft",
]  # fmt: skip
KEY = "example-key-of-this-test"
Start = Callable[..., Run]


def install(box: Box) -> None:
    box.filesystem.write(EXE, programs.image(box))
    for name in DLLS:
        box.filesystem.write(f"C:\\ninfer\\{name}", b"MZ")
    box.filesystem.write(MODEL, mirror.artifact_bytes())


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.45.99.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    box = Box.open(tmp_path / "box", "gpu01", "127.45.99.1", "rtx4090d")
    install(box)
    yield box
    box.windows.process.shut_down()


@pytest.fixture
def start(box: Box, port: int) -> Start:
    return lambda *arguments: Run(box, EXE, MODEL, "--host", "0.0.0.0", "--port", str(port), *arguments)


def request(
    port: int, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """One request; waits while the model loads, for the socket listens before it answers."""
    connection = http.client.HTTPConnection("127.45.99.1", port, timeout=20)
    data = json.dumps(body) if body is not None and not isinstance(body, str) else body
    connection.request(method, path, data, headers or {})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, json.loads(text) if "json" in (response.getheader("Content-Type") or "") else text


def wait_listening(box: Box, run: Run, port: int) -> None:
    """Until the port is bound; the program's end is a failure."""
    while not any(row["LocalPort"] == port for row in box.windows.network.listeners()):
        assert run.running.wait(0.005) is None, run.err


BEARER = {"Authorization": f"Bearer {KEY}"}


# -- command line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing artifact"),
        (["--port", "80"], "artifact path first"),
        (["m", "--nonsense"], "unknown argument: --nonsense"),
        (["m", "--port=80"], "unknown argument: --port=80"),
        (["m", "--max-conc", "2"], "unknown argument"),
        (["m", "--port"], "missing value for --port"),
        (["m", "--port", "0"], "invalid value for --port: 0"),
        (["m", "--max-concurrency", "9"], "--max-concurrency: 9"),
        (["m", "--kv-dtype", "rk9"], "--kv-dtype: rk9"),
        (["m", "--spec", "mtp", "--draft-tokens", "16"], "--draft-tokens: 16"),
        (["m", "--draft-tokens", "4"], "requires --spec"),
        (["m", "--lm-head-draft"], "requires --spec"),
        (["m", "--prefill-chunk", "100"], "--prefill-chunk: 100"),
        (["m", "--kv-capacity", "100"], "at least --max-context"),
        (["m", "--kv-capacity", "9000"], "must not exceed"),
        (["m", "--spec", "dflash", "--vision"], "cannot be combined"),
        (["m", "--temperature", "3"], "--temperature: 3"),
        (["m", "extra"], "unknown argument: extra"),
    ],
)
def test_a_wrong_command_line_is_told_with_the_usage(box: Box, arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        parse(arguments)
    run = Run(box, EXE, *arguments)
    assert run.code == 1
    assert message in run.err
    assert "usage: ninfer-serve" in run.err


def test_defaults_and_the_last_value_wins() -> None:
    options = parse(["m"])
    assert (options.port, options.kv_capacity, options.max_context, options.draft) == (8080, 8192, 8192, 0)
    assert parse(["m", "--port", "1", "--port", "2"]).port == 2
    assert parse(["m", "--no-disk-cache", "--disk-cache-gb", "5"]).disk_cache is True
    assert parse(["m", "--disk-cache-dir", "C:\\c", "--no-disk-cache"]).disk_cache is False
    assert parse(["m", "--vision-max-tokens", "100"]).vision is True


def test_help_is_the_first_argument_only(box: Box) -> None:
    run = Run(box, EXE, "--help")
    assert run.code == 0
    assert "--wddm-evictable-budget" in usage()
    assert "--max-pending-requests <value>" in run.out
    assert Run(box, EXE, "m", "--help").code == 1


# -- memory


@pytest.mark.parametrize(
    ("free_gib", "dtype", "tokens"),
    [
        (30, "int8", 289280),
        (30, "rk8v4", 381888),
        (30, "rk4v4-e8", 524288),
        (22.5, "rk2v4-e8", 165056),
        (45, "int8", 524288),
    ],
)
def test_the_pool_has_the_published_size(free_gib: float, dtype: str, tokens: int) -> None:
    options = parse(["m", *PRODUCTION, "--kv-dtype", dtype])
    sizes = plan(options, int(free_gib * GIB), 49140 << 20)
    assert sizes.tokens == pytest.approx(tokens, rel=0.002)


@pytest.mark.parametrize("dtype", ["int8", "rk8v4", "rk4v4-e8"])
def test_too_little_memory_for_one_context_is_no_start(dtype: str) -> None:
    options = parse(["m", *PRODUCTION, "--kv-dtype", dtype])
    with pytest.raises(DoesNotFit, match="insufficient GPU memory"):
        plan(options, int(22.5 * GIB), 49140 << 20)


def test_the_reservation_of_the_production_set() -> None:
    sizes = plan(parse(["m", *PRODUCTION]), 47 * GIB, 49140 << 20)
    assert sizes.reservation / GIB == pytest.approx(11.69, rel=0.01)
    assert sizes.weights / GIB == pytest.approx(16.67, rel=0.001)


# -- ways to end


def test_a_missing_dll_ends_it_without_a_word(box: Box) -> None:
    box.filesystem.host("C:\\ninfer\\libcurl.dll").unlink()
    run = Run(box, EXE, MODEL)
    assert (run.code, run.out, run.err) == (0xC0000135, "", "")


@pytest.mark.parametrize("draft", ["8", "9", "15"])
def test_more_than_seven_draft_tokens_kill_it(start: Start, draft: str) -> None:
    run = start("--spec", "mtp", "--draft-tokens", draft)
    assert run.code == 3
    assert "cudaErrorGraphExecUpdateFailure (update result 2)" in run.err


def test_the_wddm_budget_kills_it_silently_with_a_display(box: Box, start: Start, port: int) -> None:
    run = start(*PRODUCTION, "--wddm-evictable-budget")
    assert run.code == 0xC0000409
    assert "error" not in run.err
    gpu = box.store.get("gpu")
    gpu["devices"][0] |= {"display_attached": False, "display_active": False}
    box.store.set("gpu", value=gpu)
    alive = start(*PRODUCTION, "--wddm-evictable-budget")
    wait_listening(box, alive, port)
    assert request(port, "GET", "/health")[0] == 200


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "bad magic"), (b"GGUF....", "bad magic"), (mirror.artifact_bytes(3)[:64], "container version 3")],
)
def test_a_foreign_artifact_is_refused(box: Box, start: Start, content: bytes, message: str) -> None:
    box.filesystem.write(MODEL, content)
    run = start()
    assert run.code == 1
    assert message in run.err


def test_a_card_that_is_too_small(tmp_path: Path) -> None:
    box = Box.open(tmp_path / "small", "gpu02", "127.45.99.2", "rtx4090-24gb")
    install(box)
    run = Run(box, EXE, MODEL, "--host", "0.0.0.0", *PRODUCTION, "--kv-dtype", "int8")
    assert run.code == 1
    assert "insufficient GPU memory" in run.err
    assert box.windows.gpu.used_bytes(0) == 812 << 20


def test_an_old_driver(tmp_path: Path) -> None:
    box = Box.open(tmp_path / "old", "gpu03", "127.45.99.3", "old-driver")
    install(box)
    run = Run(box, EXE, MODEL, "--port", "8181")
    assert run.code == 3
    assert "driver version is insufficient" in run.err


def test_ports_that_cannot_be_had(box: Box, start: Start, port: int) -> None:
    first = start()
    wait_listening(box, first, port)
    second = start()
    assert second.code == 1
    assert "failed to bind" in second.err
    assert Run(box, EXE, MODEL, "--port", "5357").code == 1
    assert Run(box, EXE, MODEL, "--host", "8.8.8.8").code == 1


def test_a_request_log_that_cannot_be(box: Box) -> None:
    assert Run(box, EXE, MODEL, "--request-log-jsonl", "C:\\none\\x.jsonl").code == 1
    assert Run(box, EXE, MODEL, "--request-log-jsonl", MODEL.upper()).code == 1


# -- serving


def ask_again(connection: http.client.HTTPConnection) -> None:
    connection.request("GET", "/health")
    connection.getresponse()


def test_from_loading_to_the_end(box: Box, start: Start, port: int) -> None:
    run = start(*PRODUCTION, "--api-key", KEY, "--request-log-jsonl", "C:\\ninfer\\requests.jsonl")
    wait_listening(box, run, port)
    listener = box.windows.network.listeners([port])[0]
    assert (listener["LocalAddress"], listener["OwningProcess"]) == ("0.0.0.0", run.running.pid)
    assert listener["ExecutablePath"] == EXE
    assert request(port, "GET", "/health") == (200, {"status": "ok"})
    assert "auth: bearer" in run.err
    assert box.windows.gpu.used_bytes(0) > 28 * GIB
    assert f"<pid>{run.running.pid}</pid>" in box.windows.gpu.smi_xml()
    assert box.windows.process.list(["ninfer-serve"])[0]["ProcessId"] == run.running.pid

    kept = http.client.HTTPConnection("127.45.99.1", port, timeout=20)
    kept.request("GET", "/health")
    kept.getresponse().read()
    stopped = box.windows.process.stop(run.running.pid)
    assert stopped == {"Stopped": True, "ExitCode": 1}
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        ask_again(kept)
    assert box.windows.network.listeners([port]) == []
    assert box.windows.gpu.used_bytes(0) == 812 << 20
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.45.99.1", port))

    first = json.loads(box.filesystem.host("C:\\ninfer\\requests.jsonl").read_text().splitlines()[0])
    assert first["event"] == "server_start"
    assert first["engine"]["kv_capacity_tokens"] == 524288
    assert KEY not in json.dumps(first)
    assert first["environment"]["gpu_name"] == "NVIDIA GeForce RTX 4090 D"


def test_keys(box: Box, start: Start, port: int) -> None:
    wait_listening(box, start("--api-key", KEY), port)
    for path in ("/v1/models", "/metrics", "/slots"):
        status, body = request(port, "GET", path)
        assert status == 401
        assert body["error"]["code"] == "invalid_api_key"
        assert request(port, "GET", path, headers={"Authorization": "Bearer wrong"})[0] == 401
        assert request(port, "GET", path, headers=BEARER)[0] == 200
        assert request(port, "GET", path, headers={"x-api-key": KEY})[0] == 200
    status, body = request(port, "POST", "/v1/messages", {"messages": []})
    assert status == 401
    assert body == {"type": "error", "error": {"type": "authentication_error", "message": "Invalid API key"}}


def test_what_the_model_list_tells(box: Box, start: Start, port: int) -> None:
    wait_listening(box, start("--max-context", "131072", "--vision", "--kv-dtype", "int8"), port)
    model = request(port, "GET", "/v1/models")[1]["data"][0]
    assert (model["id"], model["max_model_len"], model["modalities"]["vision"]) == (
        "qwen3.8-27b",
        131072,
        True,
    )
    assert request(port, "GET", "/v1/models/qwen3.8-27b")[0] == 200
    assert request(port, "GET", "/v1/models/other")[1]["error"]["code"] == "model_not_found"
    assert request(port, "GET", "/v1/embeddings")[0] == 404


def chat(text: str = "hello", **more: Any) -> dict[str, Any]:
    return {"model": "qwen3.8-27b", "messages": [{"role": "user", "content": text}], "max_tokens": 8, **more}


def test_completions_are_counted(box: Box, start: Start, port: int) -> None:
    wait_listening(box, start("--spec", "mtp", "--draft-tokens", "4"), port)
    status, answer = request(port, "POST", "/v1/chat/completions", chat("x" * 4000))
    assert status == 200
    assert answer["usage"]["completion_tokens"] == 8
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["choices"][0]["message"]["reasoning_content"]
    again = request(port, "POST", "/v1/chat/completions", chat("x" * 4000))[1]
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > 900
    metrics = dict(line.split() for line in request(port, "GET", "/metrics")[1].splitlines())
    assert metrics["ninfer:requests_total"] == "2"
    assert metrics["llamacpp:tokens_predicted_total"] == "16"
    assert metrics["llamacpp:requests_processing"] == "0"
    assert int(metrics["ninfer:draft_tokens_total"]) > 0


def test_streams(box: Box, start: Start, port: int) -> None:
    wait_listening(box, start(), port)
    body = chat(stream=True, stream_options={"include_usage": True})
    events = request(port, "POST", "/v1/chat/completions", body)[1].strip().split("\n\n")
    assert events[-1] == "data: [DONE]"
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-1]]
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert any("reasoning_content" in chunk["choices"][0]["delta"] for chunk in chunks[:-1])
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 8
    text = request(port, "POST", "/v1/messages", chat(stream=True))[1]
    kinds = [line.removeprefix("event: ") for line in text.splitlines() if line.startswith("event: ")]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-1] == "message_stop"


def test_the_anthropic_route_takes_any_model_name(box: Box, start: Start, port: int) -> None:
    wait_listening(box, start("--no-thinking"), port)
    status, answer = request(port, "POST", "/v1/messages", chat() | {"model": "whatever"})
    assert (status, answer["model"], answer["stop_reason"]) == (200, "whatever", "max_tokens")
    assert request(port, "POST", "/v1/messages/count_tokens", chat())[1]["input_tokens"] > 0


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("{", 400, "invalid_request"),
        (chat() | {"model": "x"}, 404, "model_not_found"),
        (chat("x" * 40000), 400, "context_length_exceeded"),
        (
            chat() | {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            400,
            "vision_disabled",
        ),
        (chat(max_tokens=0), 400, "invalid_request"),
    ],
)
def test_what_is_refused(box: Box, start: Start, port: int, body: Any, status: int, code: str) -> None:
    wait_listening(box, start(), port)
    answer = request(port, "POST", "/v1/chat/completions", body)
    assert (answer[0], answer[1]["error"]["code"]) == (status, code)


def test_a_full_queue_is_told(box: Box, start: Start, port: int) -> None:
    box.profile.data["serve"]["tokens_per_second"] = 200
    wait_listening(box, start("--max-pending-requests", "1", "--pending-timeout-ms", "200"), port)
    request(port, "GET", "/health")
    results: list[int] = []
    threads = [
        threading.Thread(
            target=lambda: results.append(
                request(port, "POST", "/v1/chat/completions", chat(max_tokens=300))[0]
            )
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [200, 429, 429, 503]


def test_the_disk_cache_outlives_the_process(box: Box, start: Start, port: int) -> None:
    arguments = ["--disk-cache-dir", "C:\\ninfer-cache"]
    run = start(*arguments)
    wait_listening(box, run, port)
    request(port, "POST", "/v1/chat/completions", chat("y" * 4000))
    box.windows.process.stop(run.running.pid)
    wait_listening(box, start(*arguments), port)
    answer = request(port, "POST", "/v1/chat/completions", chat("y" * 4000))[1]
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] > 900
