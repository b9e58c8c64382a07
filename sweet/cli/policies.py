"""`policies list|promote|rollback`."""

from __future__ import annotations

import argparse
from typing import Any

from sweet.cli.output import Result, add_command, note, table
from sweet.registry import served_for
from sweet.services import Services
from sweet.settings import load_settings
from sweet.types import TaskKind


def add_commands(commands: Any) -> None:
    """Add `policies` and what it does."""
    policies = commands.add_parser("policies", help="list, promote and roll back policy versions")
    verbs = policies.add_subparsers(metavar="list|promote|rollback", required=True)
    add_command(verbs, "list", list_policies, "List the policy versions, and what each serves.")
    promote = add_command(verbs, "promote", promote_policy, "Serve a version from now on.")
    promote.add_argument("policy", metavar="ID", help="as `policies list` shows it")
    add_command(verbs, "rollback", roll_back, "Serve what was served before the last promotion.")


def list_policies(args: argparse.Namespace) -> Result:
    """Every version, what it is served for, and what is wrong with those that can't be read."""
    with Services(load_settings()) as services:
        served = services.served()
        versions = services.policies()
        broken = services.registry.broken()
    for why in broken.values():
        note(f"left out: {why}")
    value = [
        {
            "id": v.id,
            "served": served_for(served, v.id),
            "base_model": v.base_model,
            "parent": v.parent_id,
            "note": v.note,
            "created_at": v.created_at or None,
        }
        for v in versions
    ]
    things = [", ".join(kind.things for kind in served_for(served, v.id)) for v in versions]
    rows = [
        (v.id, made, v.base_model, v.parent_id, v.created_at or None, v.note)
        for v, made in zip(versions, things, strict=True)
    ]
    head = ("policy", "served for", "base model", "parent", "made at", "note")
    return Result(value, table(head, rows), ok=not broken)


def promote_policy(args: argparse.Namespace) -> Result:
    """The version, served from now on."""
    with Services(load_settings()) as services:
        before = services.served()
        services.registry.promote(args.policy)
        return _changed(before, services.served())


def roll_back(args: argparse.Namespace) -> Result:
    """The version before the last promotion, served again."""
    with Services(load_settings()) as services:
        before = services.served()
        services.registry.rollback()
        return _changed(before, services.served())


def _changed(before: dict[TaskKind, str], served: dict[TaskKind, str]) -> Result:
    """What is served for each kind of tasks, and what was before."""
    lines = [
        f"{policy_id} is served for {kind.things} (before: {before[kind]})."
        for kind, policy_id in served.items()
    ]
    return Result({"served": served, "before": before}, "\n".join(lines))
