"""A server of a language model's API for tests, of Python's standard library alone: it answers as vLLM, OpenAI and
Ollama do, over real sockets, and can be slow, wrong, or die in the middle.

    server = LlmServer()          # listens on 127.0.0.1, a free port
    server.url, server.requests   # what came: (method, path, headers, body)
    server.close()

    python3 llm_server.py --joules FILE --prompt-j 0.02 --output-j 0.15    # a process of its own: says its URL, and serves until stdin ends

What it does is in the request's JSON: "model", "stream", "test" (a dict: tokens, prompt, pause, usage, die_after,
status, raw, stamp, by_close, ...). Nothing of it comes from nrg.
"""
import argparse
import contextlib
import http.server
import json
import os
import socket
import ssl
import struct
import sys
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                if not size:
                    while self.rfile.readline() not in (b"\r\n", b""):
                        pass
                    return b"".join(parts)
                parts.append(self.rfile.read(size))
                self.rfile.readline()
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def whole(self, status, body, kind="application/json", headers=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def chunk(self, data):
        self.wfile.write(data if self.by_close else b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def begin_stream(self, kind, by_close=False):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        if by_close:
            self.send_header("Connection", "close")
        else:
            self.send_header("Transfer-Encoding", "chunked")
        self.by_close = by_close
        self.close_connection |= by_close
        self.end_headers()

    def end_stream(self):
        if not self.by_close:
            self.wfile.write(b"0\r\n\r\n")

    def do_GET(self):
        self.server.owner.note(self, b"")
        if self.path.startswith("/v1/models"):
            self.whole(200, b'{"object":"list","data":[{"id":"tiny"}]}')
        else:
            self.whole(404, b'{"error":{"message":"no such path"}}')

    do_HEAD = do_GET

    def do_POST(self):
        body = self.body()
        self.server.owner.note(self, body)
        try:
            self.answer(json.loads(body))
        except (BrokenPipeError, ConnectionResetError) as error:
            self.server.owner.broken.append(error)
            self.close_connection = True

    def answer(self, ask):
        test = {"tokens": 5, "prompt": 7, "pause": 0.0, "usage": True, **ask.get("test", {})}
        if "raw" in test:
            self.wfile.write(test["raw"].encode("latin-1"))
            self.close_connection = True
        elif "status" in test:
            self.whole(test["status"], json.dumps({"error": {"message": "as asked"}}).encode(),
                       headers=[("Retry-After", "7")])
        elif "huge" in test:
            self.huge(test["huge"])
        elif self.path.startswith("/api/"):
            self.ollama(ask, test)
        elif self.path.startswith("/v1/messages/count_tokens"):
            self.whole(200, json.dumps({"input_tokens": test["prompt"]}).encode())
        elif self.path.startswith("/v1/messages"):
            (self.messages_stream if ask.get("stream") else self.messages_whole)(ask, test)
        elif self.path in self.READERS:
            self.read_only(ask, test)
        elif self.path.startswith("/v1/audio/"):
            self.unknown(test)
        elif self.path == "/generate":
            self.generate(ask, test)
        elif ask.get("stream"):
            self.openai_stream(ask, test)
        else:
            self.openai_whole(ask, test)

    def message_usage(self, test):
        """Anthropic's: what a cache had, or got, is not in input_tokens."""
        return {"input_tokens": test["prompt"] - test.get("cached", 0) - test.get("created", 0), "cache_read_input_tokens": test.get("cached", 0),
                "cache_creation_input_tokens": test.get("created", 0)}

    def messages_whole(self, ask, test):
        self.work(test)
        for _ in range(test["tokens"]):
            self.server.owner.on_token()
            time.sleep(test["pause"])
        self.whole(200, json.dumps({"id": "msg", "type": "message", "role": "assistant", "model": ask.get("model"), "stop_reason": "end_turn",
                                    "stop_sequence": None, "content": [{"type": "text", "text": "secret-answer"}],
                                    "usage": {**self.message_usage(test), "output_tokens": test["tokens"]}}).encode())

    def messages_stream(self, ask, test):
        self.begin_stream("text/event-stream; charset=utf-8")
        def event(kind, **document):
            self.chunk(f"event: {kind}\ndata: {json.dumps({'type': kind, **document})}\n\n".encode())
        self.work(test)
        event("message_start", message={"id": "msg", "type": "message", "role": "assistant", "model": ask.get("model"), "content": [],
                                        "stop_reason": None, "stop_sequence": None, "usage": {**self.message_usage(test), "output_tokens": 1}})
        event("ping")
        kinds = test.get("kinds", ("text",))
        made = 0
        for index, kind in enumerate(kinds):
            name = {"text": ("text", "text_delta", "text"), "thinking": ("thinking", "thinking_delta", "thinking"),
                    "json": ("tool_use", "input_json_delta", "partial_json")}[kind]
            block = {"type": name[0], **({"id": "t", "name": "f", "input": {}} if kind == "json" else {name[2]: ""})}
            event("content_block_start", index=index, content_block=block)
            first, until = made, test["tokens"] * (index + 1) // len(kinds)
            while made < until:
                if made == test.get("die_after"):
                    raise BrokenPipeError("died as asked")
                self.server.owner.on_token()
                piece = "secret-answer "
                if kind == "json":
                    piece = "{" * (made == first) + ('"secret-answer":0}' if made + 1 == until else " ")
                event("content_block_delta", index=index, delta={"type": name[1], name[2]: piece})
                made += 1
                time.sleep(test["pause"])
            event("content_block_stop", index=index)
        if test.get("error"):
            event("error", error={"type": "overloaded_error", "message": "as asked"})
        else:
            event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": test["tokens"]})
            event("message_stop")
        self.end_stream()

    READERS = ("/v1/embeddings", "/v1/rerank", "/score", "/classify", "/pooling")

    def read_only(self, ask, test):
        """Embeddings, rerank and score: rerank's usage has only the sum."""
        self.work(test)
        usage = {"total_tokens": test["prompt"]} if "rerank" in self.path else {"prompt_tokens": test["prompt"], "total_tokens": test["prompt"]}
        self.whole(200, json.dumps({"object": "list", "model": ask.get("model"), "usage": usage,
                                    "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25], "score": 0.5}]}).encode())

    def unknown(self, test):
        """So many joules over a time, of which the answer says nothing."""
        pieces = 1 + int(test.get("first", 0) / 0.005)
        for _ in range(pieces):
            time.sleep(test.get("first", 0) / pieces)
            self.server.owner.on_joules(test.get("joules", 0) / pieces)
        self.whole(200, b'{"text":"secret-answer"}')

    def generate(self, ask, test):
        """SGLang's: text so far, and counts, in each event."""
        self.work(test)
        def document(made):
            return json.dumps({"text": "secret-answer" * made, "meta_info": {"prompt_tokens": test["prompt"], "completion_tokens": made,
                                                                           "cached_tokens": test.get("cached", 0)}}).encode()
        if not ask.get("stream"):
            self.whole(200, document(test["tokens"]))
            return
        self.begin_stream("text/event-stream")
        for made in range(1, test["tokens"] + 1):
            self.server.owner.on_token()
            self.chunk(b"data: " + document(made) + b"\n\n")
            time.sleep(test["pause"])
        self.chunk(b"data: [DONE]\n\n")
        self.end_stream()

    def usage(self, test):
        return {"prompt_tokens": test["prompt"], "completion_tokens": test["tokens"],
                "total_tokens": test["prompt"] + test["tokens"],
                "prompt_tokens_details": {"cached_tokens": test.get("cached", 0)},
                "completion_tokens_details": {"reasoning_tokens": test.get("reasoning", 0)}}

    def work(self, test):
        """Reads the prompt: that takes its time, and the machine its joules."""
        left, first_s = test["prompt"] - test.get("cached", 0), test.get("first", 0)
        pieces = 1 + int(first_s / 0.005)
        for i in range(pieces):
            time.sleep(first_s / pieces)
            piece = left // (pieces - i)
            self.server.owner.on_prompt(piece)
            left -= piece

    def openai_whole(self, ask, test):
        self.work(test)
        for _ in range(test["tokens"]):
            self.server.owner.on_token()
            if test["pause"]:
                time.sleep(test["pause"])
        answer = {"id": "x", "object": "chat.completion", "model": ask.get("model"),
                  "choices": [{"index": 0, "message": {"role": "assistant", "content": "secret-answer " * 3}}],
                  "usage": self.usage(test) if test["usage"] else None}
        self.whole(200, json.dumps(answer).encode())

    def openai_stream(self, ask, test):
        self.begin_stream("text/event-stream; charset=utf-8", test.get("by_close", False))
        def event(document):
            stamp = {"sent_ns": time.monotonic_ns()} if test.get("stamp") else {}
            self.chunk(b"data: " + json.dumps({**document, **stamp}).encode() + b"\n\n")
        head = {"id": "x", "object": "chat.completion.chunk", "model": ask.get("model")}
        event({**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
        self.work(test)
        for i in range(test["tokens"]):
            if i == test.get("die_after"):
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                raise BrokenPipeError("died as asked")
            self.server.owner.on_token()
            event({**head, "choices": [{"index": 0, "delta": {"content": f"secret-answer{i} "}}]})
            if test["pause"]:
                time.sleep(test["pause"])
        event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        asked = (ask.get("stream_options") or {}).get("include_usage")
        if asked if test["usage"] == "asked" else test["usage"]:
            event({**head, "choices": [], "usage": self.usage(test)})
        self.chunk(b"data: [DONE]\n\n")
        self.end_stream()

    def ollama(self, ask, test):
        last = {"model": ask.get("model"), "done": True, "prompt_eval_count": test["prompt"],
                "eval_count": test["tokens"], "eval_duration": 5}
        chat = self.path.startswith("/api/chat")
        def part(text):
            return {"model": ask.get("model"), "done": False,
                    **({"message": {"role": "assistant", "content": text}} if chat else {"response": text})}
        self.work(test)
        if ask.get("stream") is False:
            self.whole(200, json.dumps({**part("secret-answer"), **last}).encode())
            return
        self.begin_stream("application/x-ndjson")
        for _ in range(test["tokens"]):
            self.server.owner.on_token()
            self.chunk(json.dumps(part("secret-answer")).encode() + b"\n")
            if test["pause"]:
                time.sleep(test["pause"])
        self.chunk(json.dumps({**part(""), **last}).encode() + b"\n")
        self.end_stream()

    def huge(self, size):
        """An answer of so many bytes, told by its end alone."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b'{"model":"big","padding":"')
        block = b"x" * 65536
        while size > 0:
            self.wfile.write(block[:size])
            self.server.owner.sent += min(size, len(block))
            size -= len(block)
        self.wfile.write(b'","usage":{"prompt_tokens":3,"completion_tokens":4}}')
        self.close_connection = True
        if isinstance(self.connection, ssl.SSLSocket):
            with contextlib.suppress(OSError):
                self.connection.unwrap()  # else it ends as one that was cut


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass


class LlmServer:
    """The machine's joules are its owner's affair: on_prompt(tokens), on_token(), on_joules(joules)."""

    def __init__(self, certificate=None, on_prompt=None, on_token=None):
        self.requests, self.broken, self.sent = [], [], 0
        self.on_prompt = on_prompt or (lambda tokens: None)
        self.on_token = on_token or (lambda: None)
        self.on_joules = lambda joules: None
        self.http = Server(("127.0.0.1", 0), Handler)
        self.http.owner = self
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True,
                                                   do_handshake_on_connect=False)
        self.port = self.http.server_address[1]
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def note(self, handler, body):
        self.requests.append((handler.command, handler.path, dict(handler.headers), body))

    def close(self):
        self.http.shutdown()
        self.http.server_close()


class Meter:
    """Joules so far, in a file that a simulated domain follows (joules-from); one write of always the same length."""

    def __init__(self, path):
        self.joules, self.lock = 0.0, threading.Lock()
        self.fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
        self.add(0)

    def add(self, joules):
        with self.lock:
            self.joules += joules
            os.pwrite(self.fd, b"%020.9f\n" % self.joules, 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--joules", required=True)
    parser.add_argument("--prompt-j", type=float, required=True)
    parser.add_argument("--output-j", type=float, required=True)
    given = parser.parse_args()
    meter = Meter(given.joules)
    server = LlmServer(on_prompt=lambda n: meter.add(given.prompt_j * n), on_token=lambda: meter.add(given.output_j))
    server.on_joules = meter.add
    print(server.url, flush=True)
    sys.stdin.read()
    server.close()


if __name__ == "__main__":
    main()
