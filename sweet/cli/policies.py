"""`policies list|promote|rollback`."""

from __future__ import annotations

import argparse
from typing import Any

from sweet.cli.output import Result, add_command, note, table
from sweet.services import Services
from sweet.settings import load_settings


def add_commands(commands: Any) -> None:
    """Add `policies` and what it does."""
    policies = commands.add_parser("policies", help="list, promote and roll back policy versions")
    verbs = policies.add_subparsers(metavar="list|promote|rollback", required=True)
    add_command(verbs, "list", list_policies, "List the policy versions; * is served.")
    promote = add_command(verbs, "promote", promote_policy, "Serve a version from now on.")
    promote.add_argument("policy", metavar="ID", help="as `policies list` shows it")
    add_command(verbs, "rollback", roll_back, "Serve what was served before the last promotion.")


def list_policies(args: argparse.Namespace) -> Result:
    """Every version, which one is served, and what is wrong with those that can't be read."""
    with Services(load_settings()) as services:
        served = services.default_policy(None)
        versions = services.policies()
        broken = services.registry.broken()
    for why in broken.values():
        note(f"left out: {why}")
    value = [
        {
            "id": v.id,
            "served": v.id == served,
            "base_model": v.base_model,
            "parent": v.parent_id,
            "note": v.note,
            "created_at": v.created_at or None,
        }
        for v in versions
    ]
    rows = [
        (
            "*" if v["served"] else "",
            v["id"],
            v["base_model"],
            v["parent"],
            v["created_at"],
            v["note"],
        )
        for v in value
    ]
    head = ("", "policy", "base model", "parent", "made at", "note")
    return Result(value, table(head, rows), ok=not broken)


def promote_policy(args: argparse.Namespace) -> Result:
    """The version, served from now on."""
    with Services(load_settings()) as services:
        before = services.default_policy(None)
        version = services.registry.promote(args.policy)
    value = {"served": version.id, "before": before}
    return Result(value, f"{version.id} is served now (before: {before}).")


def roll_back(args: argparse.Namespace) -> Result:
    """The version before the last promotion, served again."""
    with Services(load_settings()) as services:
        before = services.default_policy(None)
        services.registry.rollback()
        served = services.default_policy(None)
    value = {"served": served, "before": before}
    return Result(value, f"{served} is served again (before: {before}).")
