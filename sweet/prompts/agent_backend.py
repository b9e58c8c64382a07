"""What the agent is told when it makes a Python function. Takes an Observation and nothing else."""

from __future__ import annotations

from sweet.prompts import dialogue
from sweet.prompts.dialogue import plain as plain
from sweet.types import Message, Observation

_SYSTEM = """\
You write a Python function for a person. Their request below is vague on purpose: details that \
decide whether the function is right (limits, rates, units, special cases, rounding) are missing, \
and only the person knows them.

Work like this:
- Ask about one missing detail at a time, in one short question the person can answer in a \
sentence. They see no code, so don't show any while you are asking.
- Don't ask twice for what you have been told, and don't guess what you could still ask.
- You have {turns} messages in all, and the last of them must be your answer.
- When you know enough, write {mark} and after it one complete Python function with the name and \
the parameters of the request, with everything it needs (imports, helpers), and no explanation. \
The conversation ends there, so don't write these words before you mean it.
"""
_LAST = "\n\n(This is your last message. Write {mark} and the function now.)"


def instructed(observation: Observation) -> tuple[Message, ...]:
    """The prompt for a general model: instructions, the dialogue, a warning on the last turn."""
    return dialogue.instructed(observation, _SYSTEM, _LAST)
