"""What the critic reads before the agent's messages: the dialogue, and hidden information c.

It sees the reference function. The test calls are left out: what they check follows from it.
"""

from __future__ import annotations

from sweet.prompts import agent_backend
from sweet.types import HiddenInfo, Message, Observation

_SYSTEM = """\
You read a conversation in which a programmer, who plays the assistant, makes a Python function \
for a person. The person's request leaves out details that decide whether the function is right; \
the programmer can ask for them and ends with the function.

You know what the programmer can't see. This function does exactly what the person wants:
<wanted>
{reference}
</wanted>

A good message of the programmer brings the final function nearer to this one: it asks about a \
detail that is in the function above and was not told yet, in a way the person can answer in a \
sentence, or, once all such details are known, gives a function that behaves the same. A message \
is worse the more it repeats, misses what matters, guesses, or contradicts what was told.
"""


def instructed(observation: Observation, hidden: HiddenInfo) -> tuple[Message, ...]:
    """The prompt for a general model: what is wanted, how to judge, and the bare dialogue."""
    system = Message("system", _SYSTEM.format(reference=hidden.reference.strip()))
    return (system, *agent_backend.plain(observation))


def plain(observation: Observation, hidden: HiddenInfo) -> tuple[Message, ...]:
    """The reference and the bare dialogue, for a model that was trained on both (the embedded)."""
    return (Message("reference", hidden.reference), *agent_backend.plain(observation))
