"""`python -m trainer …`: makes and measures models."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from sweet.errors import SweetError


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code of the command in `argv` (default: this process's arguments)."""
    args = _parser().parse_args(argv)
    try:
        args.run(args)
    except SweetError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on from the last checkpoint", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m trainer", description=__doc__)
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    pretrain = commands.add_parser("pretrain", help="make the embedded model from nothing")
    pretrain.add_argument("--out", type=Path, default=Path("build/embedded"))
    pretrain.add_argument("--threads", type=int, default=2, help="CPU threads")
    pretrain.add_argument("--device", default="cpu", help="cpu or cuda")
    pretrain.add_argument("--stop-after", type=int, help="end after so many steps, to go on later")
    _settings_options(pretrain)
    pretrain.set_defaults(run=_pretrain)
    measure = commands.add_parser("measure", help="the embedded model's figures, for its card")
    measure.add_argument("--model", type=Path, help="a folder; default: the shipped model")
    measure.add_argument("-n", type=int, default=500, help="tasks a figure")
    measure.set_defaults(run=_measure)
    return top


def _settings_options(parser: argparse.ArgumentParser) -> None:
    from trainer.pretrain import PretrainSettings

    for field in fields(PretrainSettings):
        option = "--" + field.name.replace("_", "-")
        parser.add_argument(option, type=type(field.default), default=field.default)


def _pretrain(args: argparse.Namespace) -> None:
    import torch

    from trainer.pretrain import PretrainSettings, pretrain

    torch.set_num_threads(args.threads)
    chosen = {f.name: getattr(args, f.name) for f in fields(PretrainSettings)}
    settings = PretrainSettings(**chosen)
    print(pretrain(args.out, settings, device=args.device, stop_after=args.stop_after))


def _measure(args: argparse.Namespace) -> None:
    import json

    from trainer.measure import measure_embedded

    print(json.dumps(measure_embedded(args.model, args.n), indent=2))


if __name__ == "__main__":
    sys.exit(main())
