"""HTML as a small tree: elements and texts in their order, however the source was laid out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
UNSEEN = frozenset("head script style template title noscript".split())
MAX_CHARS = 128 << 10
MAX_NODES = 20_000
MAX_DEPTH = 100

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_LOOSE = re.compile(r"<(?=[^<>]*(?:<|\Z))")  # opens no tag, and costs the parser square time


@dataclass(slots=True)
class Node:
    """An element: `children` are elements and texts with single spaces."""

    tag: str
    attrs: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        """The words of the class attribute."""
        return self.attrs.get("class", "").split()

    @property
    def elements(self) -> list[Node]:
        """The children that are elements."""
        return [child for child in self.children if isinstance(child, Node)]

    @property
    def text(self) -> str:
        """What a reader sees of it, with single spaces."""
        parts = [" ".join(c for c in n.children if isinstance(c, str)) for n in self.walk()]
        return " ".join(" ".join(parts).split())

    def walk(self) -> Iterator[Node]:
        """This element and all that can be seen inside, in the order of the source."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [c for c in reversed(node.elements) if c.tag not in UNSEEN]

    def same_as(self, other: Node) -> bool:
        """Whether both are the same page: order of classes and attributes does not count."""
        return self._key() == other._key()

    def _key(self) -> object:
        attrs = {k: v for k, v in self.attrs.items() if k != "class"}
        inside = [c._key() if isinstance(c, Node) else c for c in self.children]
        return (self.tag, sorted(attrs.items()), sorted(set(self.classes)), inside)


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("document")
        self._open = [self.root]
        self._count = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._count += 1
        if self._count > MAX_NODES or len(self._open) > MAX_DEPTH:
            return
        node = Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)  # in HTML the slash closes nothing

    def handle_endtag(self, tag: str) -> None:
        for depth in range(len(self._open) - 1, 0, -1):
            if self._open[depth].tag == tag:
                del self._open[depth:]
                return

    def handle_data(self, data: str) -> None:
        if text := " ".join(data.split()):
            self._open[-1].children.append(text)


def parse_html(html: str) -> Node:
    """The tree of any text, as far as it goes: a page too big or too deep is cut."""
    builder = _Builder()
    builder.feed(_LOOSE.sub("&lt;", _COMMENT.sub("", html[:MAX_CHARS])))
    builder.close()
    return builder.root
