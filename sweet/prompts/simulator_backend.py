"""What a model is told that plays the person who wants a Python function.

It sees the reference function and the dialogue; not the test calls, which a person would not know.
"""

from __future__ import annotations

from sweet.types import Action, HiddenInfo, Message, Observation

_SYSTEM = """\
You play a person who asked a programmer for a Python function. The programmer writes to you; you \
reply as that person.

Your request was:
<request>
{description}
</request>

This function does exactly what you want. The programmer can't see it and must not:
<wanted>
{reference}
</wanted>

How you reply:
- In at most two short sentences of everyday words.
- Only to what was asked, and only what follows from the function above. Give the exact numbers \
and conditions that answer the question; volunteer nothing else.
- If the function doesn't tell, say that you don't know.
- Never write code, never quote the function, its lines or its variable names, and don't say that \
you have it.
"""


def messages(observation: Observation, action: Action, hidden: HiddenInfo) -> tuple[Message, ...]:
    """The prompt for the reply to `action`; the agent speaks in the user's role."""
    system = _SYSTEM.format(description=observation.description, reference=hidden.reference)
    prompt = [Message("system", system)]
    for exchange in observation.exchanges:
        prompt.append(Message("user", exchange.agent))
        prompt.append(Message("assistant", exchange.collaborator))
    prompt.append(Message("user", action.message))
    return tuple(prompt)
