"""What form fields show: their text lies outside the document that a snapshot tells of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

WITHOUT_TEXT = frozenset("checkbox color file hidden image radio range".split())
NAMED = {"submit": "Submit", "reset": "Reset"}  # what Chromium writes on unnamed buttons


def field_texts(nodes: dict[str, Any], strings: list[str]) -> dict[int, str]:
    """The text shown in each field of a DOMSnapshot's nodes: its value, else its placeholder."""
    values = {
        node: strings[value]
        for kind in ("inputValue", "textValue")
        for node, value in zip(nodes[kind]["index"], nodes[kind]["value"], strict=True)
        if value >= 0
    }
    chosen = dict(_chosen(nodes, strings))
    texts = {}
    for node, name in enumerate(nodes["nodeName"]):
        tag = strings[name]
        if tag == "SELECT":
            texts[node] = chosen.get(node, "")
        elif tag in ("INPUT", "TEXTAREA"):
            texts[node] = _written(_attributes(nodes, strings, node), values.get(node, ""))
    return texts


def _written(attributes: dict[str, str], value: str) -> str:
    kind = attributes.get("type", "").lower()
    if kind in WITHOUT_TEXT:
        return ""
    if kind == "password" and value:
        return "•" * len(value)
    return value or NAMED.get(kind) or attributes.get("placeholder", "")


def _attributes(nodes: dict[str, Any], strings: list[str], node: int) -> dict[str, str]:
    flat = [strings[index] if index >= 0 else "" for index in nodes["attributes"][node]]
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _chosen(nodes: dict[str, Any], strings: list[str]) -> Iterator[tuple[int, str]]:
    """Each list that shows one entry, with that entry."""
    parents = nodes["parentIndex"]
    entries = set(nodes["optionSelected"]["index"])
    for node, value in enumerate(nodes["nodeValue"]):
        entry = parents[node]
        if entry not in entries or value < 0:
            continue
        owner = parents[entry]
        if owner >= 0 and strings[nodes["nodeName"][owner]] == "OPTGROUP":
            owner = parents[owner]
        if "multiple" not in _attributes(nodes, strings, owner):
            yield owner, strings[value]
