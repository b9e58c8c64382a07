from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from email.utils import formatdate
from typing import Any

import pytest

from sweet.engines.openai import EndpointEngine
from sweet.errors import ConfigError, PolicyError
from sweet.types import Completion, Message, Sampling, Usage
from tests.sweet.engines import server as fake
from tests.sweet.engines.server import (
    DONE,
    USAGE,
    Server,
    event,
    hangs,
    hangs_up,
    piece,
    refuses,
    says,
    sends,
    serving,
    streams,
)

KEY = "sk-very-secret-0123456789"
PROMPT = [Message("system", "You help."), Message("user", "Hello")]


def engine(server: Server, **settings: Any) -> EndpointEngine:
    return EndpointEngine(server.base_url, "small", **{"backoff_s": 0.01, **settings})


def ask(engine: EndpointEngine, sampling: Sampling | None = None, **kwargs: Any) -> Completion:
    return asyncio.run(engine.complete(PROMPT, sampling or Sampling(), **kwargs))


def failure(*script: fake.Answer, **settings: Any) -> str:
    """The message with which a call fails."""
    with serving(*script) as server, pytest.raises(PolicyError) as caught:
        ask(engine(server, **settings))
    return str(caught.value)


def test_a_streamed_answer_comes_whole_piece_by_piece_and_counted() -> None:
    heard: list[str] = []
    with serving(says("Good ", "day, ", "Zoë 🙂")) as server:
        completion = ask(engine(server), on_text=heard.append)
    assert heard == ["Good ", "day, ", "Zoë 🙂"]
    assert completion.text == "Good day, Zoë 🙂"
    assert completion.usage == Usage(11, 3)
    assert completion.finish_reason == "stop"
    assert completion.duration_ms > 0


def test_the_request_holds_the_model_the_messages_and_the_settings() -> None:
    settings = Sampling(temperature=0.5, top_p=0.9, max_tokens=77, seed=5, stop=("END", ""))
    with serving(says("Hi")) as server:
        ask(engine(server, api_key=f" {KEY}\n"), settings)
        path, headers, body = server.asked[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body == {
        "model": "small",
        "messages": [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": "Hello"},
        ],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 77,
        "seed": 5,
        "stop": ["END"],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_pictures_follow_the_text_as_data_addresses() -> None:
    prompt = [Message("system", "Look."), Message("user", "These:", (b"one", b"two"))]
    with serving(says("Hi")) as server:
        asyncio.run(engine(server).complete(prompt, Sampling()))
        _, _, body = server.asked[0]
    assert body["messages"][0]["content"] == "Look."
    text, *pictures = body["messages"][1]["content"]
    assert text == {"type": "text", "text": "These:"}
    urls = [picture["image_url"]["url"] for picture in pictures]
    assert urls == ["data:image/png;base64,b25l", "data:image/png;base64,dHdv"]


def test_without_key_seed_or_stop_none_is_sent() -> None:
    with serving(says("Hi")) as server:
        ask(engine(server))
        _, headers, body = server.asked[0]
    assert "Authorization" not in headers
    assert not {"seed", "stop"} & set(body)


@pytest.mark.parametrize("adapter", ["v0007", "/data/policies/v0007"])
def test_an_adapter_is_asked_for_as_a_model(adapter: str) -> None:
    with serving(says("Hi")) as server:
        ask(engine(server), adapter=adapter)
        assert server.asked[0][2]["model"] == "v0007"


@pytest.mark.parametrize("chunk_bytes", [1, 2, 7])
def test_bytes_may_be_cut_anywhere(chunk_bytes: int) -> None:
    text = "naïve 🙂 line\u2028separator\x85 and\r\nnewline"
    raw = piece(text) + piece("", "stop") + DONE
    raw = raw.replace(b"\n\n", b"\r\n\r\n")
    parts = [raw[i : i + chunk_bytes] for i in range(0, len(raw), chunk_bytes)]
    with serving(streams(*parts)) as server:
        assert ask(engine(server)).text == text


def test_a_stream_without_usage_has_no_figures_made_up() -> None:
    with serving(streams(piece("Hi", "stop"), DONE)) as server:
        assert ask(engine(server)).usage is None


def test_an_answer_cut_by_max_tokens_says_so() -> None:
    with serving(says("def f(", finish="length")) as server:
        assert ask(engine(server)).finish_reason == "length"


def test_a_finished_answer_counts_though_the_server_never_says_done() -> None:
    with serving(streams(piece("Hi"), piece("", "stop"))) as server:
        assert ask(engine(server)).text == "Hi"


def test_a_server_that_does_not_stream_is_understood() -> None:
    body = (
        '{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}],'
        ' "usage": {"prompt_tokens": 2, "completion_tokens": 1}}'
    )
    heard: list[str] = []
    with serving(sends(200, "application/json", body)) as server:
        completion = ask(engine(server), on_text=heard.append)
    assert (completion.text, completion.usage, heard) == ("Hi", Usage(2, 1), ["Hi"])


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again(status: int) -> None:
    with serving(refuses(status), refuses(status), says("Hi")) as server:
        assert ask(engine(server)).text == "Hi"
        assert len(server.asked) == 3


def test_a_server_that_hangs_up_before_it_speaks_is_asked_again() -> None:
    with serving(hangs_up, streams(), says("Hi")) as server:
        assert ask(engine(server)).text == "Hi"
        assert len(server.asked) == 3


def test_retries_end_and_the_message_counts_them() -> None:
    with serving(refuses(503, "overloaded")) as server, pytest.raises(PolicyError) as caught:
        ask(engine(server, retries=2))
    assert "503" in str(caught.value)
    assert "overloaded" in str(caught.value)
    assert "tried 3 times" in str(caught.value)
    assert len(server.asked) == 3


def test_the_wait_that_the_server_asks_for_is_kept() -> None:
    began: list[float] = []

    def strict(handler: fake.Handler, body: dict[str, Any]) -> None:
        began.append(time.monotonic())
        early = began[-1] < began[0] + 0.3
        (refuses(429, Retry_After="0.3") if early else says("Hi"))(handler, body)

    with serving(strict) as server:
        assert ask(engine(server, retries=1)).text == "Hi"


# Named, since test processes that run side by side must find tests of the same names.
@pytest.mark.parametrize(
    "after", ["3600", formatdate(time.time() + 3600, usegmt=True)], ids=["seconds", "date"]
)
def test_a_wait_longer_than_the_whole_timeout_fails_at_once(after: str) -> None:
    message = failure(refuses(429, "slow down", Retry_After=after), timeout_s=1)
    assert "slow down" in message
    assert "wait" in message


def test_a_quota_that_is_used_up_is_not_asked_again() -> None:
    answer = refuses(429, "You exceeded your current quota", code="insufficient_quota")
    with serving(answer) as server, pytest.raises(PolicyError, match="exceeded your current"):
        ask(engine(server))
    assert len(server.asked) == 1


def test_a_stream_that_drops_midway_fails_and_is_not_asked_again() -> None:
    heard: list[str] = []
    with (
        serving(streams(piece("Half an ")), says("whole")) as server,
        pytest.raises(PolicyError, match=r"dropped the connection in the middle .* 8 characters"),
    ):
        ask(engine(server), on_text=heard.append)
    assert heard == ["Half an "]
    assert len(server.asked) == 1


def test_a_body_cut_short_fails_the_same_way() -> None:
    def cut(handler: fake.Handler, _: dict[str, Any]) -> None:
        handler.close_connection = True
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        handler.wfile.write(piece("Half"))

    assert "dropped the connection in the middle" in failure(cut)


def test_silence_before_the_answer_is_a_slow_server() -> None:
    message = failure(hangs(), timeout_s=0.2)
    assert "too slow" in message
    assert "0.2 s" in message


def test_silence_amid_the_answer_is_a_slow_server() -> None:
    assert "after 5 characters" in failure(hangs(piece("Hello")), timeout_s=0.2)


def test_a_server_that_drips_forever_meets_the_total_timeout() -> None:
    def drips(handler: fake.Handler, _: dict[str, Any]) -> None:
        def forever() -> Any:
            while not handler.server.released.wait(0.02):
                yield b": still here\n\n"

        handler.send_events(forever())

    message = failure(drips, timeout_s=5, total_timeout_s=0.3)
    assert "did not finish its answer within 0.3 s" in message


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_says_so_and_never_shows_it(status: int) -> None:
    message = failure(refuses(status, f"Incorrect API key provided: {KEY}"), api_key=KEY)
    assert "did not accept the key" in message
    assert KEY not in message
    assert "Incorrect API key provided: ***" in message


def test_a_missing_key_says_so() -> None:
    assert "wants an API key, and none is set" in failure(refuses(401))


def test_the_key_is_in_no_log_and_no_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(refuses(401, KEY)) as server:
        asked = engine(server, api_key=KEY)
        with pytest.raises(PolicyError) as caught:
            ask(asked)
    assert KEY not in caplog.text
    assert KEY not in repr(asked) + repr(caught.value) + str(caught.value.__cause__)


def test_a_missing_model_lists_those_there_are() -> None:
    message = failure(refuses(404, "The model `small` does not exist."))
    assert "no model 'small'" in message
    assert "small, large" in message


def test_a_base_url_without_v1_is_found_out() -> None:
    with serving(says("Hi")) as server, pytest.raises(PolicyError) as caught:
        ask(EndpointEngine(server.address, "small"))
    assert f"The base URL should be {server.base_url}" in str(caught.value)


def test_a_web_page_is_no_answer() -> None:
    message = failure(sends(200, "text/html", "<!doctype html><title>Welcome</title>"))
    assert "a web page" in message
    assert "base URL" in message


@pytest.mark.parametrize("text", ["not json", "[1, 2]", '"text"', '{"choices": ['])
def test_what_is_no_json_object_is_no_answer(text: str) -> None:
    assert "no JSON object" in failure(sends(200, "application/json", text))
    assert "no JSON object" in failure(streams(f"data: {text}\n\n".encode()))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": None},
        {"choices": ["text"]},
        {"choices": [{"message": None, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": "  \n"}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]},
    ],
)
def test_an_empty_reply_is_a_failure(body: dict[str, Any]) -> None:
    assert "empty reply" in failure(sends(200, "application/json", json.dumps(body)))


def test_a_model_that_only_reasoned_says_to_allow_more() -> None:
    thought = piece("", reasoning_content="Let me see")
    message = failure(streams(thought, piece("", "length"), USAGE, DONE))
    assert "1024 tokens on reasoning" in message


def test_an_error_amid_the_stream_is_shown() -> None:
    broke = event({"error": {"message": "the engine died"}})
    assert "the engine died" in failure(streams(piece("Hal"), broke))


def test_a_content_filter_is_no_answer() -> None:
    assert "content filter" in failure(says("I", finish="content_filter"))


def test_a_context_too_long_shows_the_servers_numbers() -> None:
    said = "This model's maximum context length is 4096 tokens; you asked for 5000."
    message = failure(refuses(400, said))
    assert said in message
    assert "Shorten the dialogue or lower max_tokens" in message


@pytest.mark.parametrize("field", ["stream_options", "seed"])
def test_a_field_that_the_server_does_not_know_is_left_out_from_then_on(field: str) -> None:
    with serving(refuses(400, f"Unknown parameter: '{field}'."), says("Hi")) as server:
        asked = engine(server)
        assert ask(asked, Sampling(seed=1)).text == "Hi"
        assert ask(asked, Sampling(seed=1)).text == "Hi"
    assert [field in body for _, _, body in server.asked] == [True, False, False]


def test_max_tokens_is_renamed_where_the_server_says_so() -> None:
    said = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    with serving(refuses(400, said), says("Hi")) as server:
        ask(engine(server), Sampling(max_tokens=9))
    assert server.asked[1][2]["max_completion_tokens"] == 9
    assert "max_tokens" not in server.asked[1][2]


def test_a_server_that_never_takes_a_field_does_not_loop() -> None:
    assert "refused the request (400)" in failure(refuses(400, "max_completion_tokens: seed!"))


def test_a_moved_server_is_not_followed() -> None:
    message = failure(sends(308, "text/plain", "", Location="https://elsewhere.example/v1"))
    assert "https://elsewhere.example/v1" in message


def test_a_refused_connection_asks_whether_the_server_runs() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(PolicyError, match="Is the server running"):
        ask(EndpointEngine(f"http://127.0.0.1:{port}/v1", "small", backoff_s=0.01))


def test_a_host_that_does_not_exist_says_so() -> None:
    with pytest.raises(PolicyError, match="Nothing answers at"):
        ask(EndpointEngine("http://no-such-host.invalid/v1", "small", backoff_s=0.01))


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host/v1", "http://", "http://[::1"])
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigError, match=r"http://127\.0\.0\.1:8000/v1"):
        EndpointEngine(url, "small")


def test_secrets_in_the_address_are_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        EndpointEngine(f"https://me:{KEY}@host.example/v1", "small")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-ключ", "sk-a b", "sk-a\nX-Evil: 1"])
def test_what_can_be_no_key_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        EndpointEngine("http://127.0.0.1:8000/v1", "small", key)
    assert key not in str(caught.value)


def test_an_address_pasted_with_its_path_is_understood() -> None:
    with serving(says("Hi")) as server:
        assert ask(EndpointEngine(f" {server.base_url}/chat/completions/ ", "small")).text == "Hi"


def test_a_reference_is_never_sent() -> None:
    with serving(says("Hi")) as server, pytest.raises(PolicyError, match="role 'reference'"):
        asyncio.run(
            engine(server).complete([Message("reference", "def f(): ..."), *PROMPT], Sampling())
        )
    assert not server.asked


def test_cancelling_closes_the_connection() -> None:
    closed = []

    def until_closed(handler: fake.Handler, _: dict[str, Any]) -> None:
        def forever() -> Any:
            while not handler.server.released.wait(0.02):
                yield piece("more ")

        try:
            handler.send_events(forever())
        except OSError:
            closed.append(True)
            handler.server.released.set()

    async def cancel(server: Server) -> None:
        heard = asyncio.Event()
        task = asyncio.create_task(
            engine(server).complete(PROMPT, Sampling(), on_text=lambda _: heard.set())
        )
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with serving(until_closed) as server:
        asyncio.run(cancel(server))
        assert server.released.wait(5)
    assert closed


def test_many_calls_from_several_loops_do_not_cross() -> None:
    def echo(handler: fake.Handler, body: dict[str, Any]) -> None:
        says(body["messages"][0]["content"])(handler, body)

    async def several(asked: EndpointEngine, names: list[str]) -> list[str]:
        calls = [asked.complete([Message("user", n)], Sampling()) for n in names]
        return [c.text for c in await asyncio.gather(*calls)]

    async def threads(asked: EndpointEngine) -> list[list[str]]:
        jobs = [
            asyncio.to_thread(asyncio.run, several(asked, [f"{t}-{i}" for i in range(5)]))
            for t in range(4)
        ]
        return await asyncio.gather(*jobs)

    with serving(echo) as server:
        heard = asyncio.run(threads(engine(server)))
    assert heard == [[f"{t}-{i}" for i in range(5)] for t in range(4)]


@pytest.mark.parametrize(
    "wrong",
    [Sampling(temperature=-1), Sampling(top_p=0), Sampling(top_p=2), Sampling(max_tokens=0)],
)
def test_settings_that_cannot_be_are_named(wrong: Sampling) -> None:
    with serving(says("Hi")) as server, pytest.raises(PolicyError, match="it must be"):
        ask(engine(server), wrong)
