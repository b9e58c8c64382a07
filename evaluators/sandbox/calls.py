"""The text of tests and answers before anything is run: names, calls, published rules. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from sweet.types import HiddenInfo

# The published evaluator gives 0 to an answer with one of these anywhere in its text.
REFUSED_TEXTS = (
    "import os", "from os", "import sys", "from sys", "sudo", "transformers", "exit(", "quit(",
    "argparse",
)  # fmt: skip


def published_source(answer: str) -> str:
    """The part of an answer that the published evaluator runs: the first fenced block, or all."""
    for fence in ("```python", "```"):
        if fence in answer:
            answer = answer.split(fence, 2)[1].split("```", 1)[0]
    return answer


def required_names(hidden: HiddenInfo) -> tuple[str, ...]:
    """The names that the tests call and the reference defines."""
    called: dict[str, None] = {}
    for test in hidden.test_calls:
        tree = _parse(test)
        nodes = ast.walk(tree) if tree else ()
        called |= {n.id: None for n in nodes if isinstance(n, ast.Name)}
        if tree is None:
            called |= dict.fromkeys(re.findall(r"\b([A-Za-z_]\w*)\s*\(", test))
    defined = set(re.findall(r"^(?:async\s+)?(?:def|class)\s+(\w+)", hidden.reference, re.M))
    defined |= set(re.findall(r"^([A-Za-z_]\w*)\s*=", hidden.reference, re.M))
    if not defined:  # a reference that is indented as a whole
        defined = set(re.findall(r"^\s+(?:async\s+)?(?:def|class)\s+(\w+)", hidden.reference, re.M))
    return tuple(n for n in called if n in defined)


def bare_call(test: str, names: Sequence[str]) -> str:
    """The call in a test that compares: `f(1) == 2` and `assert f(1) == 2` become `f(1)`.

    So the program's own value is what is compared, and what the test expects stays out of its
    reach.
    """
    tree = _parse(test)
    node = tree.body[0] if tree and len(tree.body) == 1 else None
    expression = node.value if isinstance(node, ast.Expr) else None
    if isinstance(node, ast.Assert):
        expression = node.test
    if isinstance(expression, ast.Compare):
        sides = [expression.left, *expression.comparators]
        calling = [s for s in sides if any(_calls(n, names) for n in ast.walk(s))]
        if len(calling) == 1:
            return ast.unparse(calling[0])
    return ast.unparse(expression) if isinstance(node, ast.Assert) and expression else test.strip()


def _calls(node: ast.AST, names: Sequence[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _parse(test: str) -> ast.Module | None:
    try:
        return ast.parse(test.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
