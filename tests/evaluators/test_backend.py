"""The backend evaluator: right answers pass however they are laid out, wrong ones don't."""

# ruff: noqa: E501

from __future__ import annotations

import asyncio
from textwrap import indent

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluators import backend
from evaluators.backend import BackendEvaluator, as_row
from evaluators.sandbox import Limits, Sandbox
from evaluators.sandbox.calls import bare_call, required_names
from sweet.types import Evaluation, Evaluator, HiddenInfo, Verdict
from tests.contracts import EvaluatorContract
from tests.evaluators.squares import CODE, TASK

RIGHT_ANSWERS = {
    "plain": CODE,
    "fenced_python": f"```python\n{CODE}\n```",
    "fenced_plain": f"Sure!\n```\n{CODE}\n```\nHope it helps.",
    "fenced_py": f"```py\n{CODE}\n```",
    "fenced_capital": f"```Python\n{CODE}\n```",
    "fenced_python3_with_spaces": f"```  python3  \n{CODE}\n```  ",
    "fenced_with_tildes": f"~~~python\n{CODE}\n~~~",
    "fenced_by_four": f"````python\n{CODE}\n````",
    "fenced_with_attributes": f"```{{.python}}\n{CODE}\n```",
    "fenced_in_a_list": "1. The code:\n\n" + indent(f"```python\n{CODE}\n```", "    "),
    "fence_not_closed": f"Here it is:\n```python\n{CODE}",
    "fence_on_the_same_line": "```python def f(x): return [n * n for n in range(x)]```",
    "in_single_backticks": "Use `def f(x): return [n * n for n in range(x)]` for it.",
    "mark_in_front": f"I WANT TO ANSWER: {CODE}",
    "mark_and_prose": f"I am sure.\nI WANT TO ANSWER:\n```python\n{CODE}\n```",
    "mark_on_its_own_line": f"I WANT TO ANSWER:\n{CODE}",
    "mark_in_bold": f"**I want to answer:**\n{CODE}",
    "mark_twice": f"I WANT TO ANSWER: now.\nI WANT TO ANSWER:\n{CODE}",
    "mark_at_the_end": f"{CODE}\nI WANT TO ANSWER:",
    "windows_lines": CODE.replace("\n", "\r\n"),
    "byte_order_mark": "\ufeff" + CODE,
    "no_break_spaces": CODE.replace("    ", "\u00a0" * 4),
    "zero_width_space": "\u200b" + CODE,
    "indented_as_a_whole": indent(CODE, "    "),
    "tabs": CODE.replace("    ", "\t"),
    "last_block_counts": f"First try:\n```\ndef f(x): return 0\n```\nBetter:\n```\n{CODE}\n```",
    "usage_after_it": f"```python\n{CODE}\n```\nUse:\n```python\nprint(f(3))\n```",
    "output_after_it": f"```python\n{CODE}\n```\nOutput:\n```\n[0, 1, 4]\n```",
    "shell_before_it": f"```bash\npip install numpy\n```\n```python\n{CODE}\n```",
    "helper_in_another_block": (
        "```python\ndef square(n):\n    return n * n\n```\nand\n"
        "```python\ndef f(x):\n    return [square(n) for n in range(x)]\n```"
    ),
    "import_in_another_block": (
        "```python\nimport math\n```\n"
        "```python\ndef f(x):\n    return [int(math.pow(n, 2)) for n in range(x)]\n```"
    ),
    "prose_around_without_fence": f"Here is my final answer:\n{CODE}\n\nHope it helps!",
    "prose_that_parses": f"Sure\n{CODE}\nThanks",
    "prose_like_an_annotation": f"Answer: code\n{CODE}\nNote: done",
    "prose_with_code_words": f"With this function, for each x from 0 on:\n{CODE}\nreturn value: list",
    "prose_between_functions": (
        "First a helper:\ndef square(n):\n    return n * n\n\nThen the function itself:\n"
        "def f(x):\n    return [square(n) for n in range(x)]\n\nThat is all."
    ),
    "prose_then_decorated": (
        "The answer is\nfrom functools import lru_cache\n@lru_cache\ndef f(x):\n"
        "    return [n * n for n in range(x)]\nas you asked."
    ),
    "triple_quotes_with_a_fence": f'def f(x):\n    """```\n    squares\n    ```"""\n{CODE[10:]}',
    "imports": "import math, itertools\nfrom operator import mul\n"
    "def f(x):\n    return list(itertools.starmap(mul, ((n, n) for n in range(x))))",
    "from_future": "from __future__ import annotations\ndef f(x: Undefined) -> Nowhere:\n"
    "    return [n * n for n in range(x)]",
    "harmless_os_and_sys": "import os, sys\n" + CODE,
    "constant": "POWER = 2\ndef f(x):\n    return [n ** POWER for n in range(x)]",
    "helper": "def f(x):\n    return _f(x)\ndef _f(x):\n    return [n * n for n in range(x)]",
    "class_": "class Square:\n    def __init__(self, n): self.n = n\n"
    "    def value(self): return self.n ** 2\ndef f(x):\n    return [Square(n).value() for n in range(x)]",
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass N:\n    n: int\n"
    "def f(x):\n    return [N(n).n ** 2 for n in range(x)]",
    "dataclass_with_text_annotation": "from dataclasses import dataclass\n@dataclass\nclass N:\n"
    "    n: 'int'\ndef f(x):\n    return [N(n).n ** 2 for n in range(x)]",
    "named_tuple_and_enum": "from typing import NamedTuple\nfrom enum import Enum\n"
    "class N(NamedTuple):\n    n: int\nclass P(Enum):\n    TWO = 2\n"
    "def f(x):\n    return [N(n).n ** P.TWO.value for n in range(x)]",
    "recursion": "def f(x):\n    return f(x - 1) + [(x - 1) ** 2] if x else []",
    "deep_recursion": "def f(x, n=900):\n    return f(x, n - 1) if n else [i * i for i in range(x)]",
    "nested_functions": "def f(x):\n    total = []\n    def add(n):\n        nonlocal total\n"
    "        total = [*total, n * n]\n    for n in range(x): add(n)\n    return total",
    "decorator": "import functools\ndef traced(g):\n    @functools.wraps(g)\n"
    "    def inner(*a, **k): return g(*a, **k)\n    return inner\n@traced\n" + CODE,
    "lambda_": "f = lambda x: [n * n for n in range(x)]",
    "alias": "def squares(x):\n    return [n * n for n in range(x)]\nf = squares",
    "under_if": "import sys\nif sys.version_info > (3,):\n" + indent(CODE, "    "),
    "under_try": "try:\n    import nonexistent\nexcept ImportError:\n    nonexistent = None\n" + CODE,
    "main_guard": CODE + "\nif __name__ == '__main__':\n    print(f(int(input())))",
    "prints": "print('loading')\ndef f(x):\n    print('x is', x)\n    return [n * n for n in range(x)]",
    "prints_a_lot": "def f(x):\n    print('y' * 200_000)\n    return [n * n for n in range(x)]",
    "examples_at_the_end": CODE + "\nprint(f(3))\nassert f(2) == [0, 1]",
    "shadows_builtins": "def f(x):\n    list = str = type = len = None\n"
    "    return [n * n for n in range(x)]",
    "redefines_a_builtin": "def sum(a): return None\ntype = 3\n" + CODE,
    "global_state": "calls = 0\ndef f(x):\n    global calls\n    calls += 1\n"
    "    return [n * n for n in range(x)]",
    "cache": "CACHE = {}\ndef f(x):\n    if x not in CACHE: CACHE[x] = [n * n for n in range(x)]\n"
    "    return CACHE[x]",
    "type_hints": "from typing import List, Optional\ndef f(x: Optional[int] = None) -> List[int]:\n"
    "    return [n * n for n in range(x)]",
    "walrus_and_match": "def f(x):\n    match x:\n        case 0: return []\n"
    "        case n if (m := n): return [i * i for i in range(m)]",
    "threads": "from concurrent.futures import ThreadPoolExecutor\ndef f(x):\n"
    "    with ThreadPoolExecutor(2) as p: return list(p.map(lambda n: n * n, range(x)))",
    "asyncio": "import asyncio\nasync def g(x): return [n * n for n in range(x)]\n"
    "def f(x):\n    return asyncio.run(g(x))",
    "own_signals": "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\n" + CODE,
    "fractions_and_decimals": "from decimal import Decimal\nfrom fractions import Fraction\n"
    "def f(x):\n    return [int(Decimal(n) ** 2 + Fraction(0).numerator) for n in range(x)]",
    "floats_of_the_same_value": "def f(x):\n    return [float(n) ** 2 for n in range(x)]",
    "half_a_second_of_work": "def f(x):\n    sum(range(8_000_000))\n    return [n * n for n in range(x)]",
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT_ANSWERS)
def test_a_right_answer_passes_however_it_is_laid_out(name: str, fixed: BackendEvaluator) -> None:
    evaluation = fixed.score(TASK, RIGHT_ANSWERS[name])
    assert evaluation.verdict is Verdict.PASS, [t.reason for t in evaluation.tests]
    assert evaluation.reward is not None and evaluation.reward.value == 1


RESULTS = {  # name: (reference's body, answer's body, whether it passes)
    "nan": ("return float('nan')", "return float('inf') - float('inf')", True),
    "nan_inside": ("return {'a': [float('nan')]}", "return {'a': [float('nan')]}", True),
    "infinity": ("return float('inf')", "return 1e999", True),
    "infinity_signs": ("return float('inf')", "return -1e999", False),
    "float_close": ("return 0.1 + 0.2", "return 0.3", True),
    "float_close_relative": ("return 1234567.1", "return 1234567.9", True),
    "float_apart": ("return 1.0", "return 1.00001", False),
    "float_cancelled": ("return 0.1 + 0.2 - 0.3", "return 0.0", True),
    "float_for_int": ("return 4 / 2", "return 2", True),
    "true_for_one": ("return 1", "return True", False),
    "one_for_true": ("return True", "return 1", False),
    "false_for_none": ("return None", "return False", False),
    "true_inside": ("return [1, 0]", "return [True, False]", False),
    "true_as_key": ("return {1: 'a'}", "return {True: 'a'}", False),
    "true_in_set": ("return {1}", "return {True}", False),
    "none": ("return None", "pass", True),
    "tuple_for_list": ("return [1, 2]", "return (1, 2)", False),
    "list_for_tuple": ("return 1, 2", "return [1, 2]", False),
    "list_order": ("return [1, 2]", "return [2, 1]", False),
    "set_order": ("return {'a', 'b', 'c'}", "return {'c', 'a', 'b'}", True),
    "set_for_list": ("return [1]", "return {1}", False),
    "frozenset_for_set": ("return {1}", "return frozenset({1})", False),
    "set_of_floats": ("return {0.1 + 0.2, 1.0}", "return {1.0, 0.3}", True),
    "dict_order": ("return {'a': 1, 'b': 2}", "return {'b': 2, 'a': 1}", True),
    "dict_key_types": ("return {1: 'a'}", "return {'1': 'a'}", False),
    "dict_floats": ("return {0.3: 1.0}", "return {0.1 + 0.2: 0.99999999}", True),
    "dict_more": ("return {'a': 1}", "return {'a': 1, 'b': None}", False),
    "default_dict": ("return {'a': 1}",
                     "import collections\nd = collections.defaultdict(int)\nd['a'] += 1\nreturn d", True),
    "counter": ("import collections\nreturn collections.Counter('aab')", "return {'b': 1, 'a': 2}", True),
    "bytes_for_text": ("return 'a'", "return b'a'", False),
    "bytes": ("return b'\\x00\\xff'", "return bytes([0, 255])", True),
    "lone_surrogate": ("return '\\ud800'", "return chr(0xd800)", True),
    "emoji": ("return '🎉é'", "return '\\U0001f389\\u00e9'", True),
    "text_case": ("return 'Yes'", "return 'yes'", False),
    "big_integer": ("return 7 ** 3000", "return 7 ** 3000", True),
    "big_integer_apart": ("return 7 ** 3000", "return 7 ** 3000 + 1", False),
    "big_integer_as_float": ("return 10 ** 400", "return 1e308", False),
    "complex": ("return 1 + 2j", "return complex(1, 2)", True),
    "range": ("return range(3)", "return range(0, 3, 1)", True),
    "range_for_list": ("return [0, 1, 2]", "return range(3)", False),
    "decimal": ("import decimal\nreturn decimal.Decimal('1.10')",
                "import decimal\nreturn decimal.Decimal('1.1')", True),
    "datetime": ("import datetime\nreturn datetime.datetime(2024, 1, 31)",
                 "import datetime as d\nreturn d.datetime(2024, 1, 30) + d.timedelta(1)", True),
    "date_for_datetime": ("import datetime\nreturn datetime.datetime(2024, 1, 31)",
                          "import datetime\nreturn datetime.date(2024, 1, 31)", False),
    "named_tuple": ("return (1, 2)",
                    "import collections\nreturn collections.namedtuple('P', 'x y')(1, 2)", True),
    "generator": ("return (n for n in (1, 2))", "return (n for n in [1, 2])", True),
    "generator_for_list": ("return [1, 2]", "return (n for n in [1, 2])", False),
    "dict_keys": ("return {'a': 1}.keys()", "return {'a': 2}.keys()", True),
    "dict_values": ("return {'a': 1}.values()", "return {'b': 1}.values()", True),
    "a_type": ("return type(x)", "return int", True),
    "another_type": ("return int", "return float", False),
    "an_object": ("class P: pass\np = P()\np.a = 1\nreturn p",
                  "class P:\n    def __init__(self): self.a = 1\nreturn P()", True),
    "an_object_that_differs": ("class P: pass\np = P()\np.a = 1\nreturn p",
                               "class P:\n    def __init__(self): self.a = 2\nreturn P()", False),
    "an_object_of_another_class": ("class P: pass\nreturn P()", "class Q: pass\nreturn Q()", False),
    "an_enum_member": ("import enum\nclass C(enum.Enum):\n    A = 1\nreturn C.A",
                       "import enum\nclass C(enum.Enum):\n    A = 1\nreturn C['A']", True),
    "raises_alike": ("raise ValueError('negative')", "raise ValueError('below zero')", True),
    "raises_another": ("raise ValueError", "raise KeyError(1)", False),
    "returns_where_it_should_raise": ("raise ValueError", "return None", False),
    "raises_where_it_should_return": ("return 1", "raise ValueError", False),
    "exits_where_it_should_return": ("return None", "raise SystemExit", False),
    "random_draws": ("import random\nreturn random.randint(1, 10 ** 9)",
                     "import random as r\nreturn r.randint(1, 10 ** 9)", True),
    "text_of_a_set": ("return list({'a', 'b', 'c', 'd'})", "return list({'a', 'b', 'c', 'd'})", True),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_compared_by_the_declared_policy(name: str, fixed: BackendEvaluator) -> None:
    expected, got, passes = RESULTS[name]
    task = HiddenInfo("def f(x):\n" + indent(expected, "    "), ("f(1)", "f(2)"))
    evaluation = fixed.score(task, "def f(x):\n" + indent(got, "    "))
    assert evaluation.reward is not None, evaluation.error
    assert bool(evaluation.reward.value) is passes, evaluation.tests[0]


def test_each_test_gets_fresh_arguments(fixed: BackendEvaluator) -> None:
    task = HiddenInfo("def f(a):\n    return sorted(a)[0]", ("f([3, 1])", "f([3, 1])", "f([2])"))
    evaluation = fixed.score(task, "def f(a):\n    a.sort()\n    return a.pop(0)")
    assert evaluation.verdict is Verdict.PASS


def test_numpy_is_there_where_the_studio_has_it(fixed: BackendEvaluator) -> None:
    pytest.importorskip("numpy")
    task = HiddenInfo("def f(a):\n    return sum(a) / len(a)", ("f([1, 2, 6])", "f([0.5])"))
    code = "import numpy as np\ndef f(a):\n    return np.mean(np.array(a))"
    assert fixed.score(task, code).verdict is Verdict.PASS
    array = HiddenInfo("import numpy as np\ndef f(a):\n    return np.array(a) * 2", ("f([1, 2])",))
    assert fixed.score(array, array.reference).verdict is Verdict.PASS
    assert fixed.score(array, "def f(a): return [2, 4]").verdict is Verdict.WRONG


def test_an_evaluation_shows_each_test(fixed: BackendEvaluator, sandbox: Sandbox) -> None:
    code = (
        "def f(x):\n    if x == 4: raise ValueError('four')\n    return [n * n for n in range(x)]"
    )
    evaluation = fixed.score(TASK, code)
    assert [t.call for t in evaluation.tests] == list(TASK.test_calls)
    assert [t.verdict for t in evaluation.tests] == ["pass", "pass", "crash", "pass"]
    failed = evaluation.tests[2]
    assert (failed.expected, failed.got) == ("[0, 1, 4, 9]", "raises ValueError")
    assert failed.reason == "ValueError: four"
    assert evaluation.tests[3].got == "[0, 1, 4, 9, 16, 25]"
    assert all(t.duration_ms is not None for t in evaluation.tests)
    assert evaluation.sandbox_level == sandbox.level
    assert evaluation.reward is not None and evaluation.reward.evaluator == "backend-fixed"
    assert (evaluation.reward.value, evaluation.reward.components["tests_passed"]) == (0, 0.75)


def test_long_results_are_shown_short(fixed: BackendEvaluator) -> None:
    task = HiddenInfo("def f(x):\n    return 'a' * 5000", ("f(1)",))
    test = fixed.score(task, "def f(x): return 'b' * 5000").tests[0]
    assert len(test.expected or "") == len(test.got or "") == 300


def test_a_test_written_as_a_comparison_is_judged_by_the_value_it_compares(fixed) -> None:
    task = HiddenInfo("def f(x):\n    return x + 1", ("f(1) == 2", "assert f(2) == 3", "5 == f(4)"))
    assert fixed.score(task, "def f(x): return x + 1").verdict is Verdict.PASS
    always = "class A:\n    def __eq__(s, o): return True\ndef f(x): return A()"
    assert fixed.score(task, always).verdict is Verdict.NOT_DATA
    assert fixed.score(task, "def f(x): return None").reward.components["tests_passed"] == 0


@pytest.mark.parametrize(
    ("test", "bare"),
    [
        ("f(1) == 2", "f(1)"),
        ("assert f(1) == 2, 'no'", "f(1)"),
        ("assert f(1)", "f(1)"),
        ("2 == f(1)", "f(1)"),
        ("f(1) is None", "f(1)"),
        ("abs(f(1) - 2) < 1e-6", "abs(f(1) - 2)"),
        ("f(f(1))", "f(f(1))"),
        ("f(1) == f(2)", "f(1) == f(2)"),
        ("g(1) == 2", "g(1) == 2"),
        (" f(1) ", "f(1)"),
        ("f(1", "f(1"),
    ],
)
def test_the_call_of_a_test(test: str, bare: str) -> None:
    assert bare_call(test, ("f",)) == bare


def test_the_names_a_task_needs_are_those_tests_use_and_the_reference_defines() -> None:
    reference = "def g(a): return a\ndef f(x): return g(x)\nLIMIT = 3\nclass C: pass"
    hidden = HiddenInfo(reference, ("f(LIMIT)", "len(f(2))", "C().x"))
    assert required_names(hidden) == ("f", "LIMIT", "C")


def test_where_the_reference_gives_nothing_to_compare_a_test_is_not_counted(fixed) -> None:
    task = HiddenInfo("def f(x):\n    return x if x else (lambda: 0)", ("f(0)", "f(1)", "f(2)"))
    evaluation = fixed.score(task, "def f(x): return x")
    assert evaluation.reward is not None and evaluation.reward.value == 1
    assert [t.verdict for t in evaluation.tests] == ["infra", "pass", "pass"]
    assert "not counted" in evaluation.tests[0].reason


@pytest.mark.parametrize(
    ("hidden", "said"),
    [
        (HiddenInfo(CODE, ()), "no tests"),
        (HiddenInfo("def f(x) return", ("f(1)",)), "reference does not work"),
        (HiddenInfo("def f(x): return lambda: 0", ("f(1)",)), "cannot be scored"),
        (HiddenInfo("def f(x):\n    while True: pass", ("f(1)",)), "cannot be scored"),
    ],
)
def test_a_task_that_cannot_be_scored_gives_no_reward(hidden, said, fixed, monkeypatch) -> None:
    monkeypatch.setattr(backend, "REFERENCE_LIMITS", Limits(cpu_s=0.2))
    evaluation = fixed.score(hidden, CODE)
    assert evaluation.reward is None
    assert evaluation.verdict is Verdict.INFRA
    assert said in (evaluation.error or "")


def test_rows_are_scored_in_order_and_wrong_rows_have_no_score(fixed: BackendEvaluator) -> None:
    rows: list[dict[str, object]] = [
        {"task_index": 0, "answer": CODE, "variant": "ignored"},
        {"task_index": 0, "answer": "def f(x): return []"},
        {"task_index": 0, "answer": None},
        {"task_index": 1, "answer": CODE},
        {"task_index": True, "answer": CODE},
        {"answer": CODE},
        {"task_index": 0, "answer": 3},
    ]
    found = list(fixed.score_rows([TASK], rows))
    assert found[0] == {"task_index": 0, "score": 1.0, "passed": True, "verdict": "pass"}
    assert found[1] == {"task_index": 0, "score": 0.25, "passed": False, "verdict": "wrong"}
    assert found[2] == {"task_index": 0, "score": 0.0, "passed": False, "verdict": "load"}
    for row in found[3:]:
        assert (row["score"], row["passed"], row["verdict"]) == (None, None, "infra")
        assert row["error"]


def test_a_failed_scoring_is_a_row_without_a_score() -> None:
    row = as_row(4, Evaluation(None, Verdict.INFRA, error="the sandbox died"))
    assert row["score"] is None and row["error"] == "the sandbox died"


def test_a_reference_is_run_once_a_task(sandbox: Sandbox, monkeypatch) -> None:
    evaluator = BackendEvaluator(sandbox)
    runs: list[bool] = []
    run = sandbox.run

    def counted(program, *, reference=False):
        runs.append(reference)
        return run(program, reference=reference)

    monkeypatch.setattr(sandbox, "run", counted)
    for _ in range(3):
        evaluator.score(TASK, CODE)
    assert runs == [True, False, False, False]
    evaluator.close()


def test_many_answers_are_scored_at_once_from_asyncio(fixed: BackendEvaluator) -> None:
    from sweet.types import Episode, Task, TaskKind

    task = Task("t", TaskKind.BACKEND, "squares", "test", "own")

    async def all_of_them() -> list[Evaluation]:
        answers = [CODE if n % 2 else "def f(x): return 0" for n in range(12)]
        episodes = [Episode(str(n), "t", "p", "c", 0, artifact=a) for n, a in enumerate(answers)]
        return await asyncio.gather(*(fixed(task, TASK, e) for e in episodes))

    found = asyncio.run(all_of_them())
    assert [e.verdict for e in found] == [Verdict.WRONG, Verdict.PASS] * 6


class TestFixedContract(EvaluatorContract):
    @pytest.fixture(autouse=True)
    def evaluator(self, fixed: BackendEvaluator) -> None:
        self.fixed = fixed

    def make(self) -> Evaluator:
        return self.fixed


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    before=st.text(max_size=60),
    after=st.text(max_size=60),
    tag=st.sampled_from(["", "python", "py", "Python3", "text"]),
)
def test_any_prose_round_a_fenced_answer_is_left_out(
    before: str, after: str, tag: str, fixed: BackendEvaluator
) -> None:
    def clean(text: str) -> str:
        return text.replace("`", "").replace("~", "").replace("\r", "")

    answer = f"{clean(before)}\n```{tag}\n{CODE}\n```\n{clean(after)}"
    assert fixed.score(TASK, answer).verdict is Verdict.PASS
