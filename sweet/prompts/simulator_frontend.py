"""What a vision model is told that plays the person who wants a web page.

It sees a picture of the page it wants and one of the agent's page; no dialogue and no HTML.
"""

from __future__ import annotations

from sweet.types import Message

_SYSTEM = """\
You play a person who has a web page made by a designer. You get two pictures: the first is the \
page you want, the second is what the designer has made so far. The designer can't see the first.

Reply to the designer as that person:
- Name the differences that strike you most, the biggest first, no more than five: what is \
missing or too much, what stands elsewhere, and which colors, sizes, alignments, numbers of \
things or texts are other ones.
- For each, say how it is in the page you want: "The header should be dark blue, not white."
- Use everyday words. No HTML, no CSS, no names of classes, and don't speak of pictures, of a \
first or second page, or of a reference.
- Don't praise, and don't ask for things that the page you want doesn't have either.
- If the two look the same, say only that it is right.
- At most {limit} characters.
"""
_NOTHING_SHOWN = (
    "The designer's message held no page that could be drawn. You see the page you want; tell the "
    "designer that you see none yet."
)


def messages(wanted: bytes, shown: bytes | None, limit: int) -> tuple[Message, ...]:
    """The prompt for the reply to a page drawn as `shown`; None where there was none to draw.

    `wanted` and `shown` are PNG pictures, `limit` is the longest reply in characters.
    """
    system = Message("system", _SYSTEM.format(limit=limit))
    if shown is None:
        return (system, Message("user", _NOTHING_SHOWN, images=(wanted,)))
    both = "The page you want, and the designer's page:"
    return (system, Message("user", both, images=(wanted, shown)))
