"""Between the handlers and Gradio: fills in the services, and turns errors into messages."""

from __future__ import annotations

import inspect
import logging
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import gradio as gr

from sweet.errors import SweetError, boundary
from ui.format import esc

_LOG = logging.getLogger("sweet.ui")
SKIP = gr.skip()
"""For an output that stays as it is."""


def bound(handler: Callable, services: object) -> Callable:
    """`handler` without its first argument, the services or what is made of them, for a listener.

    A SweetError is shown as its message; anything else as a failure of ours, with the traceback
    in the server's log. Works for plain functions, coroutines and async generators.
    """
    if inspect.isasyncgenfunction(handler):

        @wraps(handler)
        async def bridge(*args: Any) -> AsyncIterator[Any]:
            with _shown_errors():
                async for shown in handler(services, *args):
                    yield shown

    elif inspect.iscoroutinefunction(handler):

        @wraps(handler)
        async def bridge(*args: Any) -> Any:
            with _shown_errors():
                return await handler(services, *args)

    else:

        @wraps(handler)
        def bridge(*args: Any) -> Any:
            with _shown_errors():
                return handler(services, *args)

    return _without_first_parameter(bridge, handler)


def _without_first_parameter(bridge: Callable, handler: Callable) -> Callable:
    """Gradio reads the signature to know what to pass, for instance the request."""
    first, *rest = inspect.signature(handler).parameters.values()
    hints = typing.get_type_hints(handler)
    shown = [p.replace(annotation=hints.get(p.name, p.annotation)) for p in rest]
    bridge.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    bridge.__annotations__ = {name: hint for name, hint in hints.items() if name != first.name}
    return bridge


@contextmanager
def _shown_errors() -> Iterator[None]:
    try:
        with boundary(SweetError, "This is a fault of the studio; the server's log has more"):
            yield
    except SweetError as e:
        if e.__cause__ is not None:
            _LOG.warning("%s", e, exc_info=e)
        title = "That did not work"
        raise gr.Error(esc(e), duration=None, title=title, print_exception=False) from e
