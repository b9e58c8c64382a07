"""A page that nobody trusts, sealed: the document for a frame without rights, and the frame.

Three walls, each enough for most of what a page can try: the frame has no rights (no scripts, no
forms, no windows, an origin of its own), the document begins with a content policy that lets
nothing be loaded, and the whole document is one escaped attribute. What ColBench's pages take from
the network, the Tailwind stylesheet and pictures, stands in the document itself.
"""

from __future__ import annotations

import re

from ui.format import esc, field_text

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "form-action 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": f"sandbox; {POLICY}",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}
"""What a sealed document is sent with when it is opened by itself."""

_META = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
_DOCTYPE = re.compile(r"\s*<!doctype[^>]{0,300}>", re.IGNORECASE)


def sealed_document(html: str) -> str:
    """`html` with the content policy before anything of it can be loaded.

    A page's own doctype stays first, since it decides how the page is laid out.
    """
    own = _DOCTYPE.match(html)
    first = own[0].strip() if own else ""
    return f"{first}{_META}{html[own.end() :] if own else html}"


def sealed_frame(document: str, title: str) -> str:
    """A sealed document in the frame without rights."""
    return (
        f'<iframe sandbox="" srcdoc="{field_text(document)}" title="{esc(title)}" '
        'referrerpolicy="no-referrer" loading="lazy"></iframe>'
    )
