"""One-way imports: a file imports only from rooms of lower ranks; some libraries have one home."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("sweet", "evaluators", "trainer", "ui", "benchmarks", "scripts")

# A room is a module, or a package whose files may import each other as long as there is no cycle.
# The longest name that fits a file is its room.
RANKS = {
    "sweet.types": 0,
    "sweet.errors": 0,
    "sweet.seeds": 0,
    "sweet.loading": 0.5,
    "sweet.browser": 0.5,
    "sweet.settings": 1,
    "sweet.tasks": 1,
    "sweet.prompts": 1,
    "sweet.parsing": 0.5,
    "evaluators.sandbox": 1,
    "evaluators.render": 1,
    "evaluators.figures": 1,
    "evaluators.color": 0.5,
    "evaluators.blocks": 1,
    "evaluators.visual": 1.5,
    "evaluators.preference": 1.5,
    "ui.format": 1,
    "ui.session": 1,
    "ui.theme": 1,
    "ui.plots": 1.5,
    "ui.figures": 1.5,
    "trainer.allocator": 0,
    "trainer.packing": 1,
    "trainer.figures": 1.5,
    "trainer.losses": 1,
    "trainer.memory": 1,
    "sweet.engines": 2,
    "sweet.validation": 1.5,
    "sweet.store": 2,
    "sweet.registry": 2,
    "ui.sealed": 1.5,
    "ui.design": 1.8,
    "ui.conversation": 2,
    "ui.credit": 2.5,
    "ui.results": 2,
    "trainer.tree": 2,
    "trainer.encoding": 2,
    "sweet.exchange": 3,
    "sweet.comparing": 0,
    "sweet.comparing.blind": 1,
    "sweet.drawn": 0,
    "sweet.drawn.gallery": 1,
    "sweet.comparing.paper": 0,
    "sweet.comparing.leaderboard": 3,
    "sweet.comparing.standings": 3.2,
    "sweet.policy": 3,
    "sweet.drawn.differences": 2,
    "sweet.drawn.talk": 2.5,
    "sweet.simulator": 3,
    "sweet.collaborators": 3.5,
    "sweet.episode": 3,
    "ui.replay": 3,
    "ui.tables": 3,
    "evaluators.backend": 4,
    "evaluators.frontend": 4,
    "evaluators.judge": 4,
    "trainer.pairs": 4,
    "trainer.opinions": 4.2,
    "trainer.preferences": 4.3,
    "trainer.people": 4.4,
    "sweet.rollout": 5,
    "trainer.settings": 1,
    "trainer.learner": 4.1,
    "trainer.fit": 4.2,
    "trainer.whole": 4.4,
    "trainer.candidates": 4.3,
    "trainer.policy": 5,
    "trainer.lines": 1,
    "trainer.critics": 6.05,
    "trainer.rank": 6.45,
    "trainer.bestof": 6.5,
    "trainer.baselines": 5,
    "sweet.services": 6,
    "sweet.probes": 6,
    "sweet.comparing.compare": 6.1,
    "trainer.trackers": 6,
    "trainer.workbench": 6.1,
    "trainer.simulate": 6.2,
    "trainer.collect": 6.3,
    "trainer.evaluate": 6.3,
    "trainer.pairing": 6.35,
    "trainer.draws": 6.4,
    "trainer.turns": 6.45,
    "trainer.round": 6.5,
    "trainer.preview": 6.4,
    "trainer.progress": 6.1,
    "trainer.jobs": 6.6,
    "trainer.schedule": 6.7,
    "trainer.pretraining": 6,
    "ui.wire": 6.2,
    "ui.opinions": 6.2,
    "ui.designs": 6.2,
    "ui.routes": 6.2,
    "ui.choose": 6.4,
    "ui.play": 6.4,
    "ui.batches": 6.4,
    "ui.transfers": 6.4,
    "ui.find": 6.5,
    "sweet.doctor": 7,
    "ui.collaborate": 7,
    "ui.sessions": 7,
    "ui.watch": 7,
    "ui.compare_results": 2.5,
    "ui.compare_view": 3,
    "ui.compare_vote": 3.1,
    "ui.compare_live": 6.2,
    "ui.compare_figures": 6.2,
    "ui.compare_shown": 6.45,
    "ui.compare_choose": 6.5,
    "ui.compare_begin": 6.5,
    "ui.compare_play": 6.5,
    "ui.compare_runs": 6.5,
    "ui.compare": 7,
    "ui.train_plots": 3,
    "ui.train_form": 6.7,
    "ui.train_history": 6.8,
    "ui.train_round": 6.9,
    "ui.train_actions": 6.95,
    "ui.train": 7,
    "ui.leaderboard_tables": 3.5,
    "ui.leaderboard_plots": 3.6,
    "ui.leaderboard_votes": 3.6,
    "ui.leaderboard_actions": 6.6,
    "ui.leaderboard": 7,
    "sweet.cli": 8,
    "ui.shell": 8,
    "trainer.__main__": 8,
    "benchmarks": 8,
    "scripts": 8,
    "sweet.__main__": 9,
    "app": 9,
}

HOMES = {
    "gradio": ("ui", "app"),
    "torch": (
        "trainer",
        "evaluators.frontend",
        "sweet.engines.local",
        "sweet.engines.loading",
        "benchmarks",
    ),
}


def sources() -> dict[str, Path]:
    """The product's modules by name, as they lie in the working tree; no top-level __init__."""
    files = [file for name in PACKAGES for file in ROOT.glob(f"{name}/**/*.py")]
    modules = {module_name(file): file for file in [*files, *ROOT.glob("app.py")]}
    return {name: file for name, file in sorted(modules.items()) if name not in PACKAGES}


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(module: str) -> str:
    """The longest room name that the module is or lies in; empty where none is."""
    parts = module.split(".")
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((name for name in names if name in RANKS), "")


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    """The full names of what a module imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                kept = parts[: len(parts) - node.level + is_package]
                base = ".".join([*kept, *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def imported_modules(module: str, file: Path, known: dict[str, Path]) -> set[str]:
    """The product's modules that a module imports."""
    found = set()
    for name in imports(ast.parse(file.read_text()), module, file.name == "__init__.py"):
        parts = name.split(".")
        names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
        found.add(next((n for n in names if n in known), ""))
    return found - {"", module}


def wrong_way(module: str, imported: set[str]) -> list[str]:
    """What a module must not import, with the ranks."""
    mine = room(module)
    bad = [other for other in imported if room(other) != mine and not below(room(other), mine)]
    return [f"{module} ({mine}) imports {other} ({room(other)})" for other in sorted(bad)]


def below(lower: str, upper: str) -> bool:
    return RANKS[lower] < RANKS[upper]


def test_every_file_has_a_room() -> None:
    assert [module for module in sources() if not room(module)] == [], "give them a rank in RANKS"


def test_a_file_imports_only_from_lower_ranks() -> None:
    known = sources()
    bad = [
        line
        for module, file in known.items()
        for line in wrong_way(module, imported_modules(module, file, known))
    ]
    assert bad == []


def test_top_level_packages_import_nothing() -> None:
    inits = (ROOT / package / "__init__.py" for package in ("sweet", "evaluators", "trainer", "ui"))
    assert [str(i) for i in inits if any(imports(ast.parse(i.read_text()), "", True))] == []


def test_no_room_has_a_cycle_inside() -> None:
    known = sources()
    graph = {m: imported_modules(m, file, known) for m, file in known.items()}
    inside = {m: {o for o in others if room(o) == room(m)} for m, others in graph.items()}
    try:
        TopologicalSorter(inside).prepare()
    except CycleError as e:
        pytest.fail(f"a cycle of imports: {' → '.join(e.args[1])}")


@pytest.mark.parametrize("library", HOMES)
def test_a_library_stays_in_its_homes(library: str) -> None:
    homes = HOMES[library]
    strangers = [
        module
        for module, file in sources().items()
        if any(
            n.split(".")[0] == library for n in imports(ast.parse(file.read_text()), module, False)
        )
        and not any(module == home or module.startswith(f"{home}.") for home in homes)
    ]
    assert strangers == []


def test_torch_is_not_loaded_before_it_is_needed() -> None:
    code = "import app, sweet.cli, sys; print({'torch', 'transformers'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr


def test_set_up_runs_in_a_bare_python() -> None:
    code = "import scripts.setup, sys; print(*sys.modules)"
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("sweet.types", "sweet.errors"),
        ("sweet.store", "sweet.episode"),
        ("ui.format", "ui.collaborate"),
        ("sweet.settings", "sweet.tasks.colbench"),
    ],
)
def test_an_import_the_wrong_way_is_seen(module: str, imported: str) -> None:
    assert wrong_way(module, {imported, "sweet.errors"}) != []


def test_every_spelling_of_an_import_is_seen() -> None:
    code = "import a.b\nfrom . import c\nfrom ..d import e\ndef f():\n    from g import h\n"
    seen = set(imports(ast.parse(code), "sweet.tasks.colbench", False))
    assert seen == {"a.b", "sweet.tasks.c", "sweet.d.e", "g.h"}
    assert "sweet.tasks.c" in set(imports(ast.parse("from . import c"), "sweet.tasks", True))
