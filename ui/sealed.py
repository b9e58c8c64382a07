"""A page that nobody trusts, sealed: the document for a frame without rights, and the frame.

Three walls, each enough for most of what a page can try: the frame has no rights (no scripts, no
forms, no windows, an origin of its own), the document begins with a content policy that lets
nothing be loaded, and the whole document is one escaped attribute. What the renderer answers from
disk, the Tailwind stylesheet and pictures, stands in the document itself: both show the same page.
"""

from __future__ import annotations

import base64
import re
from html import unescape

from evaluators.render.answers import Answers
from ui.format import esc, field_text

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "form-action 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": f"sandbox; {POLICY}",
    "cross-origin-opener-policy": "same-origin",
}
"""What a sealed document is sent with when it is opened by itself."""

_META = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
_DOCTYPE = re.compile(r"\s*<!doctype[^>]{0,300}>", re.IGNORECASE)
_LINK = re.compile(r"<link\b[^<>]{0,2000}>", re.IGNORECASE)
_ADDRESS = re.compile(r"(?<=[\"'(=])https?://[^\s\"'<>()]{1,500}", re.IGNORECASE)


def sealed_document(html: str) -> str:
    """`html` with its stylesheet and pictures in it, and the content policy before all of it.

    A page's own doctype stays first, since it decides how the page is laid out.
    Raises: RenderError where the stylesheet or the picture is not on this machine.
    """
    own = _DOCTYPE.match(html)
    first = own[0].strip() if own else ""
    return f"{first}{_META}{_offline(html[own.end() :] if own else html)}"


def sealed_frame(document: str, title: str) -> str:
    """A sealed document in the frame without rights."""
    return (
        f'<iframe sandbox="" srcdoc="{field_text(document)}" title="{esc(title)}" '
        'referrerpolicy="no-referrer" loading="lazy"></iframe>'
    )


def _offline(html: str) -> str:
    """The page with what it would fetch and the renderer has; the rest the policy refuses."""
    answers = Answers(html)

    def style(link: re.Match[str]) -> str:
        address = _ADDRESS.search(link[0])
        answer = answers.to(unescape(address[0]), False, "stylesheet") if address else None
        return f"<style>{answer.body.decode()}</style>" if answer else link[0]

    def picture(address: re.Match[str]) -> str:
        answer = answers.to(unescape(address[0]), False, "image")
        if answer is None:
            return address[0]
        data = base64.b64encode(answer.body).decode()
        return f"data:{answer.headers['Content-Type']};base64,{data}"

    return _ADDRESS.sub(picture, _LINK.sub(style, html))
