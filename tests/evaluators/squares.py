"""The task that most tests of the backend evaluator are about, and its right answer."""

from sweet.types import HiddenInfo

CODE = "def f(x):\n    return [n * n for n in range(x)]"
TASK = HiddenInfo(CODE, ("f(0)", "f(1)", "f(4)", "f(x=6)"))
