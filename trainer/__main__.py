"""`python -m trainer …`: makes, improves and measures models."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from sweet.errors import ConfigError, SweetError
from sweet.types import TaskKind
from trainer.allocator import keep_memory

_ROUND = """A round: episodes of the log (and fresh ones, if asked) become a new policy version,
which is served from now on if it beats its parent on validation tasks. A round that broke off goes
on with --resume."""

_SCHEDULE = """When rounds start by themselves: after so many new episodes that can be learned from,
every so many hours, or whichever comes first. What is set replaces what was. Without options it is
shown. The app starts the rounds, so it has to run; it need not be restarted."""
_BEST_OF = """Best of N: plays tasks with a policy that draws N messages at each turn and says the
one that a critic scores highest. Critics read hidden information (but for sweet-nohidden's), so
this is an oracle: an upper bound for a critic's ranking, not a policy that could be served.
Nothing learns from these episodes."""


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code of the command in `argv` (default: this process's arguments)."""
    args = _parser().parse_args(argv)
    try:
        args.run(args)
    except SweetError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"stopped; {args.stopped}", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m trainer", description=__doc__)
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    pretrain = commands.add_parser("pretrain", help="make an embedded model from nothing")
    pretrain.add_argument("--out", type=Path, help="default: build/embedded-KIND")
    pretrain.add_argument("--threads", type=int, default=2, help="CPU threads")
    pretrain.add_argument("--device", default="cpu", help="cpu or cuda")
    pretrain.add_argument("--stop-after", type=int, help="end after so many steps, to go on later")
    _settings_options(pretrain)
    pretrain.set_defaults(run=_pretrain, stopped="the same command goes on from its checkpoint")
    round_ = commands.add_parser(
        "round", help="make a better policy of logged episodes", description=_ROUND
    )
    round_.add_argument("--resume", metavar="ID", help="go on with a round that broke off")
    round_.add_argument("--json", action="store_true", help="print one JSON value on stdout")
    _round_options(round_)
    round_.set_defaults(run=_round, stopped="--resume ID goes on from its last checkpoint")
    _best_of_options(commands)
    _schedule_options(commands)
    measure = commands.add_parser("measure", help="an embedded model's figures, for its card")
    measure.add_argument("--kind", choices=tuple(TaskKind), default="backend", help="of tasks")
    measure.add_argument("--model", type=Path, help="a folder; default: the shipped model")
    measure.add_argument("-n", type=int, default=500, help="tasks a figure")
    measure.set_defaults(run=_measure, stopped="nothing of it is kept")
    return top


def _settings_options(parser: argparse.ArgumentParser) -> None:
    from trainer.pretraining.pretrain import PretrainSettings

    for field in fields(PretrainSettings):
        about = f"default: {field.default}, or the kind's own"
        _option(parser, field.name, field.default, about)


def _round_options(parser: argparse.ArgumentParser) -> None:
    from trainer.settings import RoundSettings, default_of

    for field in fields(RoundSettings):
        default, pages = (default_of(field, kind) for kind in TaskKind)
        shown = "any" if default == "" else default
        about = str(field.metadata["help"])
        if "default:" not in about:
            own = "" if pages == default else f"; of web pages: {pages}"
            about += f" (default: {shown}{own})"
        _option(parser, field.name, default, about.replace("%", "%%"))  # argparse formats it


def _option(parser: argparse.ArgumentParser, name: str, default: Any, about: str) -> None:
    """An option for a setting: its name, and a value of its type or --name and --no-name."""
    option = "--" + name.replace("_", "-")
    if isinstance(default, bool):
        parser.add_argument(option, action=argparse.BooleanOptionalAction, help=about)
    else:
        parser.add_argument(option, type=type(default), metavar="…", help=about)


def _schedule_options(commands: argparse._SubParsersAction) -> None:
    schedule = commands.add_parser(
        "schedule", help="show or set when rounds start by themselves", description=_SCHEDULE
    )
    schedule.add_argument("--every-episodes", type=int, metavar="N", help="after N new episodes")
    schedule.add_argument("--every-hours", type=float, metavar="H", help="every H hours")
    schedule.add_argument("--off", action="store_true", help="no round starts by itself")
    schedule.add_argument("--json", action="store_true", help="print one JSON value on stdout")
    schedule.set_defaults(run=_schedule, stopped="nothing of it is kept")


def _schedule(args: argparse.Namespace) -> None:
    import json
    from dataclasses import asdict

    from sweet.services import Services
    from sweet.settings import load_settings
    from trainer.jobs import Jobs
    from trainer.schedule import Schedule, in_words

    episodes, hours = args.every_episodes, args.every_hours
    if args.off and (episodes is not None or hours is not None):
        raise ConfigError("--off turns the schedule off; leave the other options out.")
    with Services(load_settings()) as services:
        schedule = Schedule(Jobs(services))
        if args.off or episodes is not None or hours is not None:
            schedule.set(every_episodes=episodes or 0, every_hours=hours or 0.0)
        found = schedule.state()
    print(json.dumps(asdict(found)) if args.json else in_words(found))


def _best_of_options(commands: argparse._SubParsersAction) -> None:
    best = commands.add_parser(
        "bestof", help="a policy's figures when a critic picks its messages", description=_BEST_OF
    )
    best.add_argument(
        "--critic", required=True, metavar="ID", help="of this round; or untrained, or judge"
    )
    best.add_argument("--tasks", default="mini-backend/validation", metavar="SET")
    best.add_argument(
        "--policy", default="", metavar="ID", help="who speaks (default: whom the round began with)"
    )
    best.add_argument("-n", type=int, default=100, help="tasks, one episode each (default: 100)")
    best.add_argument("--candidates", type=int, default=16, help="messages a turn (default: 16)")
    best.add_argument("--seed", type=int, default=0)
    best.add_argument("--concurrency", type=int, default=8, help="episodes at once (default: 8)")
    best.add_argument("--json", action="store_true", help="print one JSON value on stdout")
    best.set_defaults(run=_best_of, stopped="the same command goes on with what was played")


def _best_of(args: argparse.Namespace) -> None:
    import json

    from sweet.services import Services
    from sweet.settings import load_settings
    from trainer.bestof import BestOfPlan, best_of, in_words

    def progress(done: int, total: int) -> None:
        print(f"\repisode {done} of {total}", end="\n" * (done == total), file=sys.stderr)

    plan = BestOfPlan(**{field.name: getattr(args, field.name) for field in fields(BestOfPlan)})
    with Services(load_settings()) as services:
        found = best_of(services, plan, progress)
    print(json.dumps(found) if args.json else in_words(found))


def _round(args: argparse.Namespace) -> None:
    import json
    from dataclasses import asdict

    from sweet.services import Services
    from sweet.settings import load_settings
    from trainer.round import run_round
    from trainer.settings import RoundSettings

    names = [field.name for field in fields(RoundSettings)]
    given = {name: value for name in names if (value := getattr(args, name)) is not None}
    if args.resume and given:
        changed = ", ".join("--" + name.replace("_", "-") for name in given)
        raise ConfigError(f"A round is resumed with its own settings; leave out {changed}.")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # to be stopped as by Ctrl-C
    with Services(load_settings()) as services:
        done = run_round(services, RoundSettings(**given), resume=args.resume)
        why = services.registry.manifest(str(done.version_id)).version.note
    print(json.dumps(asdict(done)) if args.json else f"{done.id}: {done.version_id}, {why}")


def _pretrain(args: argparse.Namespace) -> None:
    import torch

    from trainer.pretraining.pretrain import PretrainSettings, pretrain, settings_for

    torch.set_num_threads(args.threads)
    given = {f.name: getattr(args, f.name) for f in fields(PretrainSettings)}
    given = {name: value for name, value in given.items() if value is not None}
    settings = settings_for(**{"kind": "backend", **given})
    out = args.out or Path("build") / f"embedded-{settings.kind}"
    print(pretrain(out, settings, device=args.device, stop_after=args.stop_after))


def _measure(args: argparse.Namespace) -> None:
    import json

    from trainer.pretraining.measure import measure_embedded
    from trainer.pretraining.page_measure import measure_pages

    measure = measure_embedded if args.kind == TaskKind.BACKEND else measure_pages
    print(json.dumps(measure(args.model, args.n), indent=2))


if __name__ == "__main__":
    keep_memory()
    sys.exit(main())
