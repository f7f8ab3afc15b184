"""The HTTP surface of ninfer-serve: OpenAI and Anthropic routes, health, metrics, slots."""

from __future__ import annotations

import contextlib
import hmac
import http.server
import json
import selectors
import socket
import time
from collections.abc import Iterator
from typing import Any

from simbox.programs.serve_engine import Engine, Job, Refused, count_tokens
from simbox.programs.serve_log import RequestLog
from simbox.programs.serve_options import Options


class Server(http.server.ThreadingHTTPServer):
    """Bound and listening from the start; nothing is answered until `serve_forever`."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: str, port: int, options: Options, engine: Engine, log: RequestLog) -> None:
        self.options = options
        self.engine = engine
        self.log = log
        self._open: set[socket.socket] = set()
        self._wake, self._woken = socket.socketpair()
        super().__init__((address, port), Handler)

    def serve(self) -> None:
        """Answer until `stop` is called from another thread."""
        with selectors.DefaultSelector() as selector:
            selector.register(self, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while all(key.fileobj is not self._woken for key, _ in selector.select()):
                super()._handle_request_noblock()  # type: ignore[misc]

    def stop(self) -> None:
        """End `serve` and break every open connection, as a killed process does."""
        self._wake.send(b"x")
        self.break_connections()

    def server_close(self) -> None:
        """Close the listener."""
        super().server_close()
        self._wake.close()
        self._woken.close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection: it breaks when the process is killed."""
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget it."""
        self._open.discard(request)
        super().shutdown_request(request)

    def break_connections(self) -> None:
        """End every open connection at once."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no fault of the server."""


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "ninfer"
    sys_version = ""
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """The request log is the server's own."""

    def do_OPTIONS(self) -> None:
        """Answered without a key when --cors is on."""
        if self.server.options.cors:
            self.send_response(204)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Access-Control-Allow-Headers", "*")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._error(404, "not_found", "no such route")

    def do_GET(self) -> None:
        """Health is open; everything else needs the key when there is one."""
        path = self.path.partition("?")[0]
        if path == "/health":
            self._json(200, {"status": "ok"})
        elif not self._authorised():
            self._error(401, "invalid_api_key", "Invalid API key")
        elif path == "/metrics":
            self._send(200, self.server.engine.metrics().encode(), "text/plain; version=0.0.4")
        elif path == "/slots":
            self._json(200, self.server.engine.slots())
        elif path == "/v1/models":
            self._json(200, {"object": "list", "data": [self._model()]})
        elif path == f"/v1/models/{self.server.options.model_id}":
            self._json(200, self._model())
        elif path.startswith("/v1/models/"):
            self._error(404, "model_not_found", f"model {path[11:]} not found")
        else:
            self._error(404, "not_found", "no such route")

    def do_POST(self) -> None:
        """Completions."""
        path = self.path.partition("?")[0]
        length = int(self.headers.get("Content-Length") or 0)
        if length > self.server.options.max_request_mib << 20:
            self.close_connection = True
            self._error(413, "request_too_large", "request body too large")
            return
        body = self.rfile.read(length)
        if not self._authorised():
            self._error(401, "invalid_api_key", "Invalid API key")
            return
        routes = {
            "/v1/chat/completions": self._chat,
            "/v1/messages": self._messages,
            "/v1/messages/count_tokens": self._count,
        }
        if path not in routes:
            self._error(404, "not_found", "no such route")
            return
        try:
            request = json.loads(body)
            if not isinstance(request, dict) or not isinstance(request.get("messages"), list):
                raise ValueError("messages is required")
        except ValueError as error:
            self._error(400, "invalid_request", f"invalid JSON: {error}")
            return
        try:
            routes[path](request)
        except Refused as refusal:
            self.server.log.write("request_error", status=refusal.status, code=refusal.code)
            self._error(refusal.status, refusal.code, str(refusal))

    # -- routes

    def _model(self) -> dict[str, Any]:
        options = self.server.options
        return {
            "id": options.model_id,
            "object": "model",
            "owned_by": "ninfer",
            "context_window": options.max_context,
            "max_model_len": options.max_context,
            "max_output_tokens": options.max_context,
            "modalities": {"vision": options.vision},
        }

    def _chat(self, request: dict[str, Any]) -> None:
        options = self.server.options
        if request.get("model") != options.model_id:
            raise Refused(404, "model_not_found", f"model {request.get('model')} not found")
        job = self._admit(request, request.get("max_completion_tokens") or request.get("max_tokens"))
        head = {"id": f"chatcmpl-{job.id}", "created": int(time.time()), "model": options.model_id}
        if request.get("stream"):
            usage = bool((request.get("stream_options") or {}).get("include_usage"))
            self._stream(self._chat_chunks(job, head, usage))
            return
        pieces = list(self.server.engine.generate(job))
        self._done(job)
        message = {"role": "assistant", "content": _text(pieces, "content")}
        if job.thinking:
            message["reasoning_content"] = _text(pieces, "reasoning")
        choice = {"index": 0, "message": message, "finish_reason": job.finish_reason}
        answer = {**head, "object": "chat.completion", "choices": [choice], "usage": _usage(job)}
        self._json(200, answer | {"timings": _timings(job)})

    def _chat_chunks(self, job: Job, head: dict[str, Any], usage: bool) -> Iterator[str]:
        def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            value = {**head, "object": "chat.completion.chunk", "choices": [choice], **more}
            return f"data: {json.dumps(value)}\n\n"

        yield chunk({"role": "assistant", "content": ""})
        for kind, text in self.server.engine.generate(job):
            yield chunk({"reasoning_content" if kind == "reasoning" else "content": text})
        self._done(job)
        yield chunk({}, job.finish_reason, timings=_timings(job))
        if usage:
            last = {**head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(job)}
            yield f"data: {json.dumps(last)}\n\n"
        yield "data: [DONE]\n\n"

    def _messages(self, request: dict[str, Any]) -> None:
        job = self._admit(request, request.get("max_tokens"))
        model = str(request.get("model") or self.server.options.model_id)
        head = {"id": f"msg_{job.id}", "type": "message", "role": "assistant", "model": model}
        if request.get("stream"):
            self._stream(self._message_events(job, head))
            return
        pieces = list(self.server.engine.generate(job))
        self._done(job)
        answer = head | {
            "content": [{"type": "text", "text": _text(pieces, "content")}],
            "stop_reason": _stop_reason(job),
            "stop_sequence": None,
            "usage": {
                "input_tokens": job.prompt_tokens,
                "output_tokens": job.completion_tokens,
                "cache_read_input_tokens": job.cached_tokens,
            },
        }
        self._json(200, answer)

    def _message_events(self, job: Job, head: dict[str, Any]) -> Iterator[str]:
        def event(kind: str, **fields: Any) -> str:
            return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

        usage = {"input_tokens": job.prompt_tokens, "output_tokens": 0}
        yield event("message_start", message=head | {"content": [], "stop_reason": None, "usage": usage})
        yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for kind, text in self.server.engine.generate(job):
            if kind == "content":
                yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
        self._done(job)
        yield event("content_block_stop", index=0)
        usage = {"output_tokens": job.completion_tokens}
        yield event(
            "message_delta", delta={"stop_reason": _stop_reason(job), "stop_sequence": None}, usage=usage
        )
        yield event("message_stop")

    def _count(self, request: dict[str, Any]) -> None:
        self._json(200, {"input_tokens": count_tokens(_prompt(request))})

    # -- parts

    def _admit(self, request: dict[str, Any], max_tokens: object) -> Job:
        if max_tokens is not None and (not isinstance(max_tokens, int) or max_tokens < 1):
            raise Refused(400, "invalid_request", "max_tokens must be a positive integer")
        if not self.server.options.vision and "image_url" in json.dumps(request["messages"]):
            raise Refused(400, "vision_disabled", "the server was started without --vision")
        thinking = (
            self.server.options.thinking
            and (request.get("chat_template_kwargs") or {}).get("enable_thinking") is not False
        )
        job = self.server.engine.admit(_prompt(request), max_tokens, thinking)
        self.server.log.write("request_start", request_id=job.id, prompt_tokens=job.prompt_tokens)
        return job

    def _done(self, job: Job) -> None:
        self.server.log.write(
            "request_done",
            request_id=job.id,
            finish_reason={"length": "output_limit", "stop": "stop_token"}.get(
                job.finish_reason, job.finish_reason
            ),
            prompt_tokens=job.prompt_tokens,
            completion_tokens=job.completion_tokens,
            computed_tokens=job.prompt_tokens - job.cached_tokens,
            cached_tokens=job.cached_tokens,
            reuse_path="prefix" if job.cached_tokens else "none",
            tool_calls=0,
            seconds={
                "ttft": round(job.ttft_s, 6),
                "prefill": round(job.prefill_s, 6),
                "vision": 0,
                "decode": round(job.decode_s, 6),
                "total": round(time.monotonic() - job.started, 6),
            },
            speculative={"drafted": job.drafted, "accepted": job.accepted},
        )

    def _authorised(self) -> bool:
        key = self.server.options.api_key
        if not key:
            return True
        scheme, _, bearer = (self.headers.get("Authorization") or "").partition(" ")
        given = bearer.strip() if scheme.lower() == "bearer" else self.headers.get("x-api-key") or ""
        return hmac.compare_digest(given.encode(), key.encode())

    def _error(self, status: int, code: str, message: str) -> None:
        if self.path.startswith("/v1/messages"):
            kind = {
                401: "authentication_error",
                404: "not_found_error",
                429: "overloaded_error",
                413: "request_too_large",
            }.get(status, "invalid_request_error" if status < 500 else "api_error")
            self._json(status, {"type": "error", "error": {"type": kind, "message": message}})
            return
        kind = "server_error" if status >= 500 else "invalid_request_error"
        self._json(status, {"error": {"message": message, "type": kind, "param": None, "code": code}})

    def _json(self, status: int, value: Any) -> None:
        self._send(status, json.dumps(value).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.server.options.cors:
            self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, chunks: Iterator[str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for text in chunks:
            data = text.encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


def _prompt(request: dict[str, Any]) -> str:
    return json.dumps([request.get("system"), request["messages"]], ensure_ascii=False)


def _text(pieces: list[tuple[str, str]], kind: str) -> str:
    return "".join(text for which, text in pieces if which == kind)


def _stop_reason(job: Job) -> str:
    return "max_tokens" if job.finish_reason == "length" else "end_turn"


def _usage(job: Job) -> dict[str, Any]:
    return {
        "prompt_tokens": job.prompt_tokens,
        "completion_tokens": job.completion_tokens,
        "total_tokens": job.prompt_tokens + job.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": job.cached_tokens},
    }


def _timings(job: Job) -> dict[str, Any]:
    computed = job.prompt_tokens - job.cached_tokens
    return {
        "prompt_n": computed,
        "prompt_ms": round(job.prefill_s * 1000, 3),
        "prompt_per_second": round(computed / job.prefill_s, 3) if job.prefill_s else 0,
        "predicted_n": job.completion_tokens,
        "predicted_ms": round(job.decode_s * 1000, 3),
        "predicted_per_second": round(job.completion_tokens / job.decode_s, 3) if job.decode_s else 0,
        "ttft_ms": round(job.ttft_s * 1000, 3),
        "cache_n": job.cached_tokens,
        "draft_n": job.drafted,
        "draft_n_accepted": job.accepted,
    }
