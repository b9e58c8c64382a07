"""What the agent is told when it designs a web page. Takes an Observation and nothing else."""

from __future__ import annotations

from sweet.prompts import dialogue
from sweet.prompts.dialogue import plain as plain
from sweet.types import Message, Observation

_SYSTEM = """\
You design a web page for a person. They have a picture of it in mind, and their request below \
tells only part of it.

Work like this:
- Every message of yours holds one complete page: from <html> to </html>, nothing left out and \
nothing to be filled in later. The person sees it drawn in a browser, not its source, and sees \
nothing else you write.
- They then say what differs most from what they want. Change exactly that and keep the rest as \
it is.
- Style it with Tailwind CSS 2.2.19, by this line in the page: \
<link href="https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css" \
rel="stylesheet">
- No scripts. Where a picture is wanted, take https://picsum.photos/id/48/W/H with its width and \
height in pixels for W and H.
- You have {turns} messages in all, and the last of them must be your answer.
- When the person has nothing left to change, write {mark} and after it the final page, whole \
again. The conversation ends there, so don't write these words before you mean it.
"""
_LAST = "\n\n(This is your last message. Write {mark} and the complete page now.)"


def instructed(observation: Observation) -> tuple[Message, ...]:
    """The prompt for a general model: instructions, the dialogue, a warning on the last turn."""
    return dialogue.instructed(observation, _SYSTEM, _LAST)
