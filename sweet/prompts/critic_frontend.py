"""What the critic reads before the designer's messages: the dialogue, and hidden information c.

It reads the source of the page that is wanted: a critic has to compare it with the designer's.
"""

from __future__ import annotations

from sweet.prompts.dialogue import plain as _bare
from sweet.types import HiddenInfo, Message, Observation

_SYSTEM = """\
You read a conversation in which a designer, who plays the assistant, draws a web page for a \
person. The person has a picture of the page in mind and tells, page by page, what differs from it.

You know what the designer can't see. This is the source of the page that the person wants:
<wanted>
{reference}
</wanted>

A good message of the designer holds one complete page that looks more like the wanted one than \
the page before: what the person named is changed, and the rest is as it was. Until the person has \
nothing left to change, it is better to show the page than to end with it. A message is worse the \
more it changes what nobody asked for, leaves out what was named, undoes what was right, or holds \
no page.
"""


def instructed(observation: Observation, hidden: HiddenInfo) -> tuple[Message, ...]:
    """The prompt for a general model: what is wanted, how to judge, and the bare dialogue."""
    system = Message("system", _SYSTEM.format(reference=hidden.reference.strip()))
    return (system, *_bare(observation))


def plain(observation: Observation, hidden: HiddenInfo) -> tuple[Message, ...]:
    """The wanted page and the bare dialogue, for a model trained on both (the embedded)."""
    return (Message("reference", hidden.reference), *_bare(observation))
