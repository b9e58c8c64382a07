"""A Mini page's spec, read back from its HTML."""

from __future__ import annotations

from sweet.tasks.html_tree import Node, parse_html
from sweet.tasks.mini_pages import CLASSES, DETAILS, Kind, PageSpec, Section, Value, render

MAX_TEXT_CHARS = 80
MAX_ITEMS = 8


def parse_page(html: str) -> PageSpec | None:
    """The spec of a Mini page; None for any other text.

    White space, the order of classes and attributes, a doctype, and head tags round the
    stylesheet's link make no difference.
    """
    tree = _plain(parse_html(html))
    body = next((node for node in tree.elements if node.tag == "body"), None)
    if body is None:
        return None
    sections = [_read(node) for node in body.elements]
    background = _value(Kind.COLOR, body)
    found = [section for section in sections if section is not None]
    if len(found) != len(sections) or background is None:
        return None
    spec = PageSpec(str(background), tuple(found))
    if len(set(spec.names)) != len(found):
        return None
    return spec if _plain(parse_html(render(spec))).same_as(tree) else None


def _plain(document: Node) -> Node:
    """The page with its stylesheet and body as only children."""
    page = next((node for node in document.elements if node.tag == "html"), document)
    heads = [node for node in page.elements if node.tag == "head"]
    links = [n for h in (page, *heads) for n in h.elements if n.tag == "link"]
    bodies = [node for node in page.elements if node.tag not in ("head", "link", "meta", "title")]
    texts = [child for child in page.children if isinstance(child, str)]
    return Node("html", {}, [*links, *bodies, *texts])


def _read(node: Node) -> Section | None:
    """The section that an element is; its form is checked against the canonical writing later."""
    name = {"ul": "list", "section": node.attrs.get("id", "")}.get(node.tag, node.tag)
    if name not in DETAILS:
        return None
    details = []
    for detail, kind in DETAILS[name].items():
        value = _detail(node, name, detail, kind)
        if value is None:
            return None
        details.append((detail, value))
    return Section(name, tuple(details))


def _detail(node: Node, name: str, detail: str, kind: Kind) -> Value | None:
    inside = {child.tag: child for child in node.elements}
    if kind is Kind.ITEMS:
        return _items(node, name)
    if kind is Kind.TEXT:
        part = inside.get({"title": "h1", "button": "button"}.get(detail, ""), node)
        return part.text if 0 < len(part.text) <= MAX_TEXT_CHARS else None
    if detail == "button color":
        return _value(kind, inside.get("button", node))
    if detail == "size":
        return _value(kind, inside.get("h1", node))
    if name == "cards" and detail == "color":
        return _value(kind, inside.get("div", node))
    return _value(kind, node)


def _items(node: Node, name: str) -> tuple[str, ...] | None:
    if name == "form":
        texts = [c.attrs.get("placeholder", "") for c in node.elements if c.tag == "input"]
    else:
        texts = [child.text for child in node.elements]
    whole = all(0 < len(text) <= MAX_TEXT_CHARS for text in texts)
    return tuple(texts) if whole and 0 < len(texts) <= MAX_ITEMS else None


def _value(kind: Kind, node: Node) -> Value | None:
    """The one value whose class the element has."""
    found = [value for value, name in CLASSES[kind].items() if name in node.classes]
    return found[0] if len(found) == 1 else None
