"""Mode compat says of every answer what the published evaluator says, right or not."""

# ruff: noqa: E501

from __future__ import annotations

import sys
from textwrap import dedent, indent

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluators.backend import BackendEvaluator
from sweet.types import Evaluator, HiddenInfo
from tests.contracts import EvaluatorContract
from tests.evaluators.squares import CODE, TASK

COMPAT = {  # name: (answer, score)
    "plain": (CODE, 1.0),
    "fenced_python": (f"Here:\n```python\n{CODE}\n```\nbye", 1.0),
    "fenced_plain": (f"```\n{CODE}\n```", 1.0),
    "fenced_by_another_tag": (f"```py\n{CODE}\n```", 0.0),
    "fenced_capital": (f"```Python\n{CODE}\n```", 0.0),
    "first_python_block_counts": (f"```\nno\n```\n```python\n{CODE}\n```", 1.0),
    "first_block_counts": (f"```\ndef f(x): return 0\n```\n```\n{CODE}\n```", 0.0),
    "fence_not_closed": (f"```python\n{CODE}", 1.0),
    "python3_tag_leaves_its_3": (f"```python3\n{CODE}\n```", 1.0),
    "prose": (f"My answer:\n{CODE}", 0.0),
    "empty": ("", 0.0),
    "indented": (indent(CODE, "  "), 0.0),
    "helper": ("def g(n): return n * n\ndef f(x):\n    return [g(n) for n in range(x)]", 0.25),
    "helper_as_default": ("def g(n): return n * n\ndef f(x, g=g):\n    return [g(n) for n in range(x)]", 1.0),
    "helper_inside": ("def f(x):\n    def g(n): return n * n\n    return [g(n) for n in range(x)]", 1.0),
    "import_above": ("import math\ndef f(x):\n    return [int(math.pow(n, 2)) for n in range(x)]", 0.25),
    "import_inside": ("def f(x):\n    import math\n    return [int(math.pow(n, 2)) for n in range(x)]", 1.0),
    "constant_above": ("P = 2\ndef f(x):\n    return [n ** P for n in range(x)]", 0.25),
    "global_statement": ("global P\nP = 2\ndef f(x):\n    return [n ** P for n in range(x)]", 1.0),
    "recursion": ("def f(x):\n    return f(x - 1) + [(x - 1) ** 2] if x else []", 0.25),
    "lambda": ("f = lambda x: [n * n for n in range(x)]", 1.0),
    "alias": ("def g(x):\n    return [n * n for n in range(x)]\nf = g", 1.0),
    "typing_above": ("from typing import List\ndef f(x: int) -> List[int]:\n    return [n * n for n in range(x)]", 1.0),
    "typing_missing": ("def f(x: int) -> List[int]:\n    return [n * n for n in range(x)]", 0.0),
    "typing_missing_inside": ("def f(x):\n    def g(n: Foo): return n * n\n    return [g(n) for n in range(x)]", 0.0),
    "typing_of_a_local": ("def f(x):\n    y: List[int] = [n * n for n in range(x)]\n    return y", 1.0),
    "future_annotations": ("from __future__ import annotations\ndef f(x: int) -> List[int]:\n    return [n * n for n in range(x)]", 1.0),
    "comprehension_above": ("B = 2\nP = [B for _ in range(1)][0]\ndef f(x, P=P):\n    return [n ** P for n in range(x)]", 0.0),
    "comprehension_over_a_local": ("B = [2]\nP = [b for b in B][0]\ndef f(x, P=P):\n    return [n ** P for n in range(x)]", 1.0),
    "class_above": ("class A:\n    def g(self, n): return n * n\ndef f(x):\n    return [A().g(n) for n in range(x)]", 0.25),
    "class_inside": ("def f(x):\n    class A:\n        def g(self, n): return n * n\n    return [A().g(n) for n in range(x)]", 1.0),
    "main_guard": (CODE + "\nif __name__ == '__main__':\n    raise ValueError", 1.0),
    "imports_os": ("import os\n" + CODE, 0.0),
    "imports_sys_inside": ("def f(x):\n    import sys\n    return [n * n for n in range(x)]", 0.0),
    "says_import_os_outside_the_fence": (f"No import os here.\n```python\n{CODE}\n```", 0.0),
    "imports_os_after_another": ("import re, os\n" + CODE, 1.0),
    "says_exit": (CODE + "\n# exit()", 0.0),
    "says_quit": (CODE + "\n# quit(1)", 0.0),
    "says_sudo": (f"# sudo\n{CODE}", 0.0),
    "says_transformers": (f"# transformers\n{CODE}", 0.0),
    "says_argparse": (f"# argparse\n{CODE}", 0.0),
    "prints": ("def f(x):\n    print(x)\n    return [n * n for n in range(x)]", 1.0),
    "opens": ("def f(x):\n    open('nothing')", 0.0),
    "raises_on_one": ("def f(x):\n    return [n * n for n in range(x)] if x != 4 else 1 / 0", 0.75),
    "system_exit_on_one": ("def f(x):\n    if x == 4: raise SystemExit\n    return [n * n for n in range(x)]", 0.75),
    "hangs_on_one": ("def f(x):\n    while x == 4: pass\n    return [n * n for n in range(x)]", 0.75),
    "sleeps_on_one": ("import time\ndef f(x, time=time):\n    if x == 4: time.sleep(3)\n    return [n * n for n in range(x)]", 0.75),
    "sleeps_a_little": ("import time\ndef f(x, time=time):\n    time.sleep(0.1)\n    return [n * n for n in range(x)]", 1.0),
    "returns_none": ("def f(x): pass", 0.0),
    "floats": ("def f(x):\n    return [float(n * n) for n in range(x)]", 1.0),
    "almost": ("def f(x):\n    return [n * n + 1e-9 for n in range(x)]", 0.25),
    "tuple": ("def f(x):\n    return tuple(n * n for n in range(x))", 0.0),
    "truth_values": ("def f(x):\n    return [bool(n) if n < 2 else n * n for n in range(x)]", 1.0),
    "list_subclass": ("def f(x):\n    class L(list): pass\n    return L(n * n for n in range(x))", 1.0),
    "generator": ("def f(x):\n    yield from [n * n for n in range(x)]", 0.0),
    "mark_in_front": (f"I WANT TO ANSWER:\n{CODE}", 0.0),
    "mark_and_fence": (f"I WANT TO ANSWER:\n```python\n{CODE}\n```", 1.0),
    "answer_called_e": ("e = 2\ndef f(x, e=e):\n    return [n ** e for n in range(x)]", 1.0),
    "type_parameters": ("def f[T](x):\n    return [n * n for n in range(x)]", 0.0),
    "new_f_string": ("def f(x):\n    d = {'a': 1}\n    s = f'{d['a']}'\n    return [n * n for n in range(x)]", 0.0),
    "old_f_string": ("def f(x):\n    d = {'a': 1}\n    s = 'a' f\"{d['a']:>{3}}\" f'''{d[\"a\"]}'''\n    return [n * n for n in range(x)]", 1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPAT)
def test_mode_compat_says_what_the_published_evaluator_says(name: str, compat) -> None:
    answer, score = COMPAT[name]
    evaluation = compat.score(TASK, answer)
    assert evaluation.reward is not None, evaluation.error
    assert evaluation.reward.components["tests_passed"] == score, evaluation.tests
    assert evaluation.reward.evaluator == "backend-compat"


def test_mode_compat_never_counts_a_reference_without_a_result(compat, fixed) -> None:
    task = HiddenInfo("def f(x):\n    return None if x else 1", ("f(0)", "f(1)"))
    assert compat.score(task, task.reference).reward.components["tests_passed"] == 0.5
    assert fixed.score(task, task.reference).reward.components["tests_passed"] == 1.0
    raising = HiddenInfo("def f(x):\n    return 1 / x", ("f(0)", "f(1)"))
    assert compat.score(raising, raising.reference).reward.components["tests_passed"] == 0.5
    broken = HiddenInfo("def f(x) return 1", ("f(0)",))
    assert compat.score(broken, CODE).reward.value == 0


def test_mode_compat_takes_a_test_as_it_is_written(compat) -> None:
    task = HiddenInfo("def f(x):\n    return x", ("f(1) == 2", "f(2) == 2", " f(3)", "f(4) +"))
    assert compat.score(task, "def f(x): return None").reward.components["tests_passed"] == 0.25
    assert compat.score(task, task.reference).reward.components["tests_passed"] == 0.75


def exec_in_a_function(function_definition: str, test_case: str) -> object:
    """What the published evaluator is said to do, on the Python it was said of."""
    try:
        exec(compile(function_definition, "<string>", "exec", dont_inherit=True))
        return eval(compile(test_case, "<string>", "eval", dont_inherit=True))
    except Exception as e:  # noqa: F841 (its name is one of the function's variables)
        return None


TOP = ["import math", "K = 3", "def g(n):\n    return n + 1", "class A:\n    v = 2",
       "from typing import List", "L = [n for n in range(4)]", "M = {k: v for k, v in [(1, 2)]}",
       "S = sum(n for n in L) if 'L' in dir() else 0", "e = 5", "test_case = 'f(0)'",
       "global G\nG = 4", "K: int = 7", "try:\n    K\nexcept NameError as e:\n    K = 1"]  # fmt: skip
SIGNATURES = ["x", "x, K=2", "x, *rest", "x: int", "x: 'Foo'", "x: List", "x, g=len"]
BODIES = ["return x * 2", "return K + x", "return g(x)", "return math.sqrt(x)", "return A.v",
          "import math\n    return math.floor(x / 2)", "return [n for n in range(x)]", "return G + x",
          "return f(x - 1) if x else 0", "return {x: (n for n in ())} and x", "return None",
          "return (lambda n: n + x)(1)", "return 1 / (x - 1)"]  # fmt: skip


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="scores were taken on Python 3.11")
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    top=st.lists(st.sampled_from(TOP), max_size=4),
    signature=st.sampled_from(SIGNATURES),
    code=st.sampled_from(BODIES),
    test=st.sampled_from(["f(1)", "f(3)", "[f(n) for n in (1, 2)]", "f(2) == 4", "e", "test_case"]),
)
def test_mode_compat_equals_exec_inside_a_function(top, signature, code, test, compat) -> None:
    program = "\n".join([*top, f"def f({signature}):\n    {code}"])
    globals().pop("G", None)
    expected = exec_in_a_function(program, test)
    globals().pop("G", None)
    outcome = compat._run_reference(HiddenInfo(program, (test,))).outcomes[0]
    got = outcome.value if outcome.kind == "value" else None
    assert got == expected, dedent(program)


class TestCompatContract(EvaluatorContract):
    @pytest.fixture(autouse=True)
    def evaluator(self, compat: BackendEvaluator) -> None:
        self.compat = compat

    def make(self) -> Evaluator:
        return self.compat
