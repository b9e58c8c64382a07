"""Runs hostile code: hidden tests on programs that a model wrote.

levels.py    how strong the walls can be on this machine
worker.py    one worker process and the talk with it
pool.py      Sandbox: workers lent to any thread, restarted when they die
values.py    what came out: decoding and comparing
calls.py     the text of tests and answers before anything is run
inside/      what runs behind the walls; standard library only
"""

from evaluators.sandbox.levels import Level
from evaluators.sandbox.pool import Limits, Program, Sandbox, probe_levels

__all__ = ["Level", "Limits", "Program", "Sandbox", "probe_levels"]
