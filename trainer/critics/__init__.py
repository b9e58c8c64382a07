"""Critics: what a turn was worth, said in one of three ways.

ratios.py    the log-ratio of a turn's tokens to the critic's starting point
values.py    a value head's output after the turn
judge.py     the score of a model that is asked for it
choice.py    which of them, and which model, a round's settings ask for
"""

from trainer.critics.choice import (
    TurnCritic,
    open_learner,
    parent_of,
    ranking_critic,
    style_of,
    trained_critic,
)

__all__ = [
    "TurnCritic",
    "open_learner",
    "parent_of",
    "ranking_critic",
    "style_of",
    "trained_critic",
]
