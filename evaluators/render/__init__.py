"""Draws HTML that nobody trusts: one sealed Chromium, a picture and the visible elements.

renderer.py    Renderer: pages from any thread, a watchdog, new browsers for dead ones
browser.py     one running Chromium and its tabs
walls.py       what Chromium is started behind, as far as this machine can
answers.py     what a page's requests are answered with, all of it from disk
stylesheet.py  Tailwind's stylesheet, purged to the classes in use
boxes.py       the visible elements of a drawn page
fields.py      what its form fields show
"""

from evaluators.render.browser import Limits
from evaluators.render.renderer import Renderer
from evaluators.render.walls import Walls

__all__ = ["Limits", "Renderer", "Walls"]
