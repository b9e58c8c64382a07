"""The studio's look as a Gradio theme: it only points at the names that studio.css defines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

ASSETS = Path(__file__).parent / "assets"
CSS = ASSETS / "studio.css"
STYLES = (CSS, ASSETS / "design.css")
_SCRIPTS = ("studio.js", "design.js", "plots.js")

_PAIRS = {
    "body_background_fill": "var(--paper)",
    "body_text_color": "var(--ink)",
    "body_text_color_subdued": "var(--muted)",
    "background_fill_primary": "var(--panel)",
    "background_fill_secondary": "var(--sunken)",
    "border_color_primary": "var(--line)",
    "border_color_accent": "var(--accent)",
    "border_color_accent_subdued": "var(--line)",
    "color_accent_soft": "var(--accent-soft)",
    "link_text_color": "var(--accent)",
    "link_text_color_hover": "var(--accent-strong)",
    "link_text_color_active": "var(--accent-strong)",
    "link_text_color_visited": "var(--accent)",
    "code_background_fill": "var(--sunken)",
    "block_background_fill": "transparent",
    "block_border_color": "var(--line)",
    "block_info_text_color": "var(--muted)",
    "block_label_background_fill": "transparent",
    "block_label_border_color": "transparent",
    "block_label_text_color": "var(--muted)",
    "block_title_background_fill": "transparent",
    "block_title_text_color": "var(--muted)",
    "accordion_text_color": "var(--ink)",
    "panel_background_fill": "var(--panel)",
    "panel_border_color": "var(--line)",
    "input_background_fill": "var(--panel)",
    "input_background_fill_focus": "var(--panel)",
    "input_background_fill_hover": "var(--panel)",
    "input_border_color": "var(--field-line)",
    "input_border_color_focus": "var(--accent)",
    "input_border_color_hover": "var(--field-line)",
    "input_placeholder_color": "var(--muted)",
    "input_shadow": "none",
    "input_shadow_focus": "none",
    "checkbox_background_color": "var(--panel)",
    "checkbox_background_color_focus": "var(--panel)",
    "checkbox_background_color_hover": "var(--panel)",
    "checkbox_background_color_selected": "var(--accent)",
    "checkbox_border_color": "var(--field-line)",
    "checkbox_border_color_focus": "var(--accent)",
    "checkbox_border_color_hover": "var(--accent)",
    "checkbox_border_color_selected": "var(--accent)",
    "checkbox_label_background_fill": "var(--panel)",
    "checkbox_label_background_fill_hover": "var(--sunken)",
    "checkbox_label_background_fill_selected": "var(--accent-soft)",
    "checkbox_label_border_color": "var(--line)",
    "checkbox_label_border_color_selected": "var(--accent)",
    "checkbox_label_text_color": "var(--ink)",
    "checkbox_label_text_color_selected": "var(--ink)",
    "error_background_fill": "var(--bad-soft)",
    "error_border_color": "var(--bad)",
    "error_text_color": "var(--bad)",
    "error_icon_color": "var(--bad)",
    "loader_color": "var(--accent)",
    "slider_color": "var(--accent)",
    "stat_background_fill": "var(--accent)",
    "table_border_color": "var(--line)",
    "button_primary_background_fill": "var(--accent)",
    "button_primary_background_fill_hover": "var(--accent-strong)",
    "button_primary_border_color": "var(--accent)",
    "button_primary_border_color_hover": "var(--accent-strong)",
    "button_primary_text_color": "var(--accent-ink)",
    "button_primary_text_color_hover": "var(--accent-ink)",
    "button_secondary_background_fill": "var(--panel)",
    "button_secondary_background_fill_hover": "var(--sunken)",
    "button_secondary_border_color": "var(--field-line)",
    "button_secondary_border_color_hover": "var(--field-line)",
    "button_secondary_text_color": "var(--ink)",
    "button_secondary_text_color_hover": "var(--ink)",
    "button_cancel_background_fill": "var(--panel)",
    "button_cancel_background_fill_hover": "var(--bad-soft)",
    "button_cancel_border_color": "var(--bad)",
    "button_cancel_border_color_hover": "var(--bad)",
    "button_cancel_text_color": "var(--bad)",
    "button_cancel_text_color_hover": "var(--bad)",
}

_SINGLE = {
    "color_accent": "var(--accent)",
    "block_border_width": "0px",
    "block_shadow": "none",
    "block_padding": "0px",
    "block_title_text_size": "0.8125rem",
    "block_title_text_weight": "500",
    "block_title_padding": "0",
    "block_label_text_size": "0.8125rem",
    "block_radius": "8px",
    "container_radius": "8px",
    "input_radius": "6px",
    "input_padding": "9px 11px",
    "input_text_size": "0.9375rem",
    "input_border_width": "1px",
    "layout_gap": "14px",
    "form_gap_width": "12px",
    "button_border_width": "1px",
    "button_large_text_size": "0.9375rem",
    "button_large_text_weight": "600",
    "button_large_padding": "9px 16px",
    "button_large_radius": "7px",
    "button_medium_text_weight": "600",
    "button_medium_radius": "7px",
    "button_small_text_weight": "500",
    "button_small_radius": "6px",
    "button_transform_hover": "none",
    "button_transform_active": "none",
    "button_primary_shadow": "none",
    "button_primary_shadow_hover": "none",
    "checkbox_label_padding": "8px 12px",
    "checkbox_label_shadow": "none",
    "shadow_drop": "none",
    "shadow_drop_lg": "none",
    "shadow_spread": "0px",
}


def theme() -> gr.themes.Base:
    """The theme: system fonts, so that no page fetches one."""
    base = gr.themes.Base(
        text_size="md", radius_size="md", font=["ui-sans-serif"], font_mono=["ui-monospace"]
    )
    dark = {f"{name}_dark": value for name, value in _PAIRS.items()}
    return base.set(**_SINGLE, **_PAIRS, **dark)


def head() -> str:
    """What each page has in its head: our scripts, whole, so that nothing more is fetched."""
    script = "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    return f'<meta name="referrer" content="no-referrer"><script>{script}</script>'


BIND = "window.studio.bind(element, trigger, watch);"
"""Sends what is done inside our own markup to the component's click event."""

FOLLOW = "window.studio.follow(element, watch);"
"""Keeps a message in view while it is spoken."""


def markup(value: str = "", js: str | None = None, **options: Any) -> gr.HTML:
    """A place for our own markup, in our own look: Gradio's styles for prose stay out of it."""
    classes = f"studio {options.pop('elem_classes', '')}".strip()
    return gr.HTML(value, js_on_load=js, apply_default_css=False, elem_classes=classes, **options)


def lead(title: str, text: str) -> str:
    """The heading of a page. Takes our own words only: nothing is escaped."""
    return f'<div class="studio-lead"><h1>{title}</h1><p>{text}</p></div>'
