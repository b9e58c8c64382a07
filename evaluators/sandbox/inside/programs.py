"""Runs one program's tests in a child that is already confined, and reports each as a frame."""

import json
import random
import sys
import time
import types

from evaluators.sandbox.inside import encode, extract, frames, published

MAX_REASON_CHARS = 300
MODULE = "answer"


class Reporter:
    """Writes frames to the child's own pipe."""

    def __init__(self, fd: int):
        self._fd = fd

    def send(self, kind: str, index: int, data: object = None, started: float = 0.0) -> None:
        """One frame, whole."""
        elapsed_ms = (time.perf_counter() - started) * 1000 if started else 0.0
        frames.write_all(self._fd, frames.pack(kind, index, elapsed_ms, json.dumps(data).encode()))


def describe(error: BaseException) -> list[str]:
    """An exception as [its class's name, its text]; a text that cannot be had stays empty."""
    try:
        text = str(error)[:MAX_REASON_CHARS]
    except BaseException:
        text = ""
    return [type(error).__name__, text]


def run(job: dict, first: int, reporter: Reporter) -> None:
    """Run the tests of `job` from number `first` on."""
    runner = _Published if job["mode"] == "compat" else _Fixed
    try:
        program = runner(job)
    except BaseException as e:
        reporter.send("load", first, describe(e))
        return
    missing = program.missing()
    if missing:
        reporter.send("missing", first, missing)
        return
    reporter.send("loaded", first)
    for index in range(first, len(job["tests"])):
        _run_test(program, index, reporter)


def _run_test(program, index: int, reporter: Reporter) -> None:
    started = time.perf_counter()
    try:
        value = program.call(index)
        data = encode.Encoder(lenient=program.lenient).encode(value)
    except encode.TooBig as e:
        reporter.send("too_big", index, str(e), started)
    except BaseException as e:
        reporter.send("raised", index, describe(e), started)
    else:
        reporter.send("value", index, data, started)


class _Fixed:
    """The program as a module: one dict of globals, as Python itself runs a file."""

    lenient = False

    def __init__(self, job: dict):
        module = types.ModuleType(MODULE)
        sys.modules[MODULE] = module
        self._globals = module.__dict__
        self._job = job
        random.seed(0)
        tree = extract.extract(job["source"], job["names"])
        exec(compile(tree, f"<{MODULE}>", "exec", dont_inherit=True), self._globals)

    def missing(self) -> list[str]:
        return [n for n in self._job["names"] if n not in self._globals]

    def call(self, index: int) -> object:
        random.seed(index)  # the reference and the answer draw the same numbers
        test = self._job["compiled"][index]
        return eval(test or self._job["tests"][index], self._globals)


class _Published:
    """The program as the published evaluator runs it: afresh each test, its names as locals."""

    lenient = True

    def __init__(self, job: dict):
        self._source, self._tests = job["source"], job["tests"]
        tree = published.parse(self._source)
        self._code = compile(tree, "<string>", "exec", dont_inherit=True)
        self._globals = {"__name__": "evaluator", "__builtins__": __builtins__}

    def missing(self) -> list[str]:
        return []

    def call(self, index: int) -> object:
        test = self._tests[index]
        scope = {"function_definition": self._source, "test_case": test}
        exec(self._code, self._globals, scope)
        # What the evaluator's own function has in its variables comes back over the program's.
        scope.update(function_definition=self._source, test_case=test)
        scope.pop("e", None)
        tree = published.parse_test(test)
        return eval(compile(tree, "<string>", "eval", dont_inherit=True), self._globals, scope)


def warm_up() -> None:
    """Do once in the worker what each child would have to do again."""
    extract.extract("def f(x: int = 1):\n    return [x]", ["f"])
    compile(published.parse("def f(x: int = 1):\n    return x"), "<string>", "exec")
    encode.Encoder().encode({"a": [1, 2.0, (None,)]})
