"""Versions against each other: played on the same tasks, voted on blind, measured, ranked."""
