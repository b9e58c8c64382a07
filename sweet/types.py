"""The words of the domain, as records. Standard library only; everything else imports from here.

Task          what is to be made, as the agent may see it
HiddenInfo    what only the collaborator, the evaluator and the critic may see
Observation   what the policy sees before it speaks
Action        what the policy said, parsed
Turn          one agent message and the reply to it
Episode       the record of one collaboration
Evaluation    what scoring an artifact gave: a Reward, or the reason why there is none

`Policy.act` takes an Observation and nothing else, and an Observation has no field that could
carry a HiddenInfo: hidden information cannot reach the policy by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol, runtime_checkable

ANSWER_MARK = "I WANT TO ANSWER:"
MAX_TURNS = 10  # arXiv:2503.15478, section 3: at most ten turns an episode

OnText = Callable[[str], None]
"""Called with each new piece of text while a model is speaking."""


class TaskKind(StrEnum):
    """What is made: a Python function or a web page."""

    BACKEND = "backend"
    FRONTEND = "frontend"

    @property
    def things(self) -> str:
        """What is made, in plain words."""
        return "functions" if self is TaskKind.BACKEND else "web pages"


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be made, as the agent may see it.

    `source` is the task set it came from ("mini-backend", "colbench-backend", "own", …);
    `split` is "train", "validation", "test", "families" or "own".
    """

    id: str
    kind: TaskKind
    description: str
    split: str
    source: str


@dataclass(frozen=True, slots=True)
class HiddenInfo:
    """Training-time information c: the reference artifact and the test calls.

    A type of its own, so that only what asks for it can have it: the collaborator, the
    evaluator and the critic.
    """

    reference: str
    test_calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task with its hidden information; None for a person's own task, which has no reference."""

    task: Task
    hidden: HiddenInfo | None


Role = Literal["system", "user", "assistant", "reference"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt. Role "reference" is only made by prompts that may show c.

    `images` are PNG pictures that follow the text; only a model behind a server takes them.
    """

    role: Role
    content: str
    images: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A finished agent message with the reply to it."""

    agent: str
    collaborator: str


@dataclass(frozen=True, slots=True)
class Observation:
    """o_t: what the policy has seen before turn t (arXiv:2503.15478, section 3)."""

    kind: TaskKind
    description: str
    exchanges: tuple[Exchange, ...] = ()
    turns_left: int = MAX_TURNS


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Action:
    """a_t: what the policy said, `raw` verbatim; `artifact` is set on a final answer only."""

    raw: str
    message: str
    is_final: bool
    artifact: str | None = None
    usage: Usage | None = None
    duration_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One agent message with the reply to it; a final turn has no reply."""

    index: int
    action: Action
    reply: str | None = None
    reply_duration_ms: float | None = None
    advantage: float | None = None


class StopReason(StrEnum):
    """Why an episode is over."""

    ANSWERED = "answered"  # the agent gave its final answer
    TURN_LIMIT = "turn_limit"  # used up without an answer: a page stands as it is, else reward 0
    STOPPED = "stopped"  # a person or an operator stopped it: no reward
    FAILED = "failed"  # a model or the sandbox failed: no reward; can be retried
    REPLACED = "replaced"  # a person edited or retried a turn: it goes on in a fork


class Speaker(StrEnum):
    """Whose move it is."""

    AGENT = "agent"
    COLLABORATOR = "collaborator"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Reward:
    """An episode's outcome in [0, 1], its named parts and the evaluator that gave it.

    `value` is what training uses (backend: 1 when all tests pass, else 0); `components` hold the
    rest, for instance "tests_passed" as a fraction.
    """

    value: float
    components: Mapping[str, float]
    evaluator: str


class Verdict(StrEnum):
    """What became of one test, or of a whole answer."""

    PASS = "pass"
    WRONG = "wrong"
    LOAD = "load"  # empty, prose, or a syntax or import-time error
    MISSING = "missing"  # no function of the expected name
    TIMEOUT = "timeout"
    CRASH = "crash"
    TOO_BIG = "too_big"
    NOT_DATA = "not_data"  # the result is no plain data (int, str, list, dict, …)
    INFRA = "infra"  # our own failure: no reward, counted apart


@dataclass(frozen=True, slots=True)
class TestResult:
    """One hidden test: the call, what was expected and what came, as `repr` text."""

    __test__ = False  # not a pytest class

    call: str
    expected: str | None
    got: str | None
    verdict: Verdict
    duration_ms: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What scoring an artifact gave. `reward` is None where the scoring itself failed (`error`)."""

    reward: Reward | None
    verdict: Verdict
    tests: tuple[TestResult, ...] = ()
    sandbox_level: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    """The record of one collaboration. In progress while `stop_reason` is None.

    An edit or a retry by a person never changes a record: it makes a fork (`parent_id`,
    `forked_at` = the first turn index that differs) and marks the old one REPLACED.
    """

    id: str
    task_id: str
    policy_id: str
    collaborator: str  # "person", "scripted", or "llm:<model>"
    seed: int
    max_turns: int = MAX_TURNS
    turns: tuple[Turn, ...] = ()
    artifact: str | None = None
    stop_reason: StopReason | None = None
    evaluation: Evaluation | None = None
    error: str | None = None
    created_at: str = ""  # ISO 8601, UTC
    parent_id: str | None = None
    forked_at: int | None = None

    @property
    def reward(self) -> Reward | None:
        """The outcome, or None while there is none (None is not 0)."""
        return self.evaluation.reward if self.evaluation else None


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a person said about a turn (`turn_index`) or a whole episode (None).

    `rating` is in [-1, 1]: like 1, dislike -1; for an episode the person's grade of the result.
    """

    episode_id: str
    turn_index: int | None
    rating: float | None = None
    tags: tuple[str, ...] = ()
    comment: str = ""


@dataclass(frozen=True, slots=True)
class PolicyVersion:
    """A served version: a base model and, for a trained one, what training made of it.

    That is a PEFT adapter folder, or, where all weights were tuned, a folder with a whole model.
    An adapter of a version that descends from a whole model has both: it belongs on that model.
    """

    id: str
    base_model: str
    adapter_path: str | None = None
    parent_id: str | None = None
    note: str = ""
    created_at: str = ""
    model_path: str | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a model is sampled. `temperature` 0 is greedy."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 1024
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """What an engine returned. `finish_reason` "length" means `max_tokens` cut it."""

    text: str
    usage: Usage | None
    duration_ms: float
    finish_reason: Literal["stop", "length"] = "stop"


@runtime_checkable
class Engine(Protocol):
    """A language model, wherever it runs."""

    async def complete(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        *,
        adapter: str | None = None,
        on_text: OnText | None = None,
    ) -> Completion:
        """The model's next message. Cancelling the awaiting task stops the generation.

        Raises: PolicyError with a clear message on any failure; never an invented reply.
        """
        ...


@runtime_checkable
class Policy(Protocol):
    """A model version in the agent's seat."""

    id: str

    async def act(
        self, observation: Observation, *, seed: int, on_text: OnText | None = None
    ) -> Action:
        """The agent's next action. Raises: PolicyError."""
        ...


@runtime_checkable
class Collaborator(Protocol):
    """Whoever wants the artifact and knows c. A person has no such object: the page waits."""

    name: str

    async def reply(
        self, observation: Observation, action: Action, hidden: HiddenInfo, *, seed: int
    ) -> str:
        """What the collaborator says to `action`. Raises: SimulatorError."""
        ...


@dataclass(frozen=True, slots=True)
class Box:
    """A visible element of a drawn page, in CSS pixels from the page's upper left corner.

    Colours are "#rrggbb"; `background` is what is seen behind the text, its own or inherited.
    `text` is the element's own text, without its children's.
    """

    tag: str
    text: str
    x: float
    y: float
    width: float
    height: float
    color: str
    background: str
    font_size: float
    bold: bool
    align: Literal["left", "center", "right", "justify"]


@dataclass(frozen=True, slots=True)
class Rendering:
    """A page as it was drawn: its picture and its visible elements in the document's order.

    `is_cut` says that the page was longer than the picture may be.
    """

    png: bytes
    width: int
    height: int
    boxes: tuple[Box, ...]
    is_cut: bool = False


class DrawsPages(Protocol):
    """Draws HTML that nobody trusts. Safe from any thread."""

    def render(self, html: str, *, width: int = 1280) -> Rendering:
        """The page as it looks. Raises: RenderError; never a blank picture instead."""
        ...


@runtime_checkable
class Evaluator(Protocol):
    """Scores an artifact against hidden information."""

    async def __call__(self, task: Task, hidden: HiddenInfo, episode: Episode) -> Evaluation:
        """The evaluation of `episode.artifact`; a failed scoring is a value with reward None."""
        ...


@dataclass(frozen=True, slots=True)
class EpisodeFilter:
    """Which episodes of the log; an empty field does not filter."""

    text: str = ""  # full-text search over messages
    task_set: str = ""
    task_id: str = ""
    policy_id: str = ""
    collaborator: str = ""
    outcome: Literal["", "success", "fail", "unscored", "in_progress", "error"] = ""
    feedback: Literal["", "liked", "disliked", "any", "none"] = ""
    since: str = ""  # ISO dates, inclusive
    until: str = ""
    batch_id: str = ""


@dataclass(frozen=True, slots=True)
class EpisodeSummary:
    """A row of the log, without the turns."""

    id: str
    task_id: str
    task_set: str
    description: str
    policy_id: str
    collaborator: str
    turns: int
    stop_reason: StopReason | None
    reward: float | None
    tests_passed: float | None
    error: str | None
    rating: float | None
    created_at: str
    tags: tuple[str, ...] = field(default=())


class PairLevel(StrEnum):
    """What the two sides of a preference pair are."""

    TURN = "turn"  # one message each, after the same observation
    TRAJECTORY = "trajectory"  # whole episodes of one task


class PairSource(StrEnum):
    """Who preferred the chosen side."""

    OUTCOME = "outcome"  # the episodes' rewards
    CRITIC = "critic"  # the critic's advantages
    HUMAN = "human"  # a person's rating or edit
    VOTE = "vote"  # people's votes on two episodes side by side
    IMPORTED = "imported"  # a file's; who preferred it is said there


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """Two ways to go on after the same observation, the better one first.

    `scores` are the two sides' rewards, advantages or grades, on whatever scale `source` has.
    `episode_ids` name the episodes the sides were logged in; None for a sampled candidate.
    `weight` is how much it counts in training.
    """

    task_id: str
    level: PairLevel
    observation: Observation
    chosen: tuple[Turn, ...]
    rejected: tuple[Turn, ...]
    scores: tuple[float, float]
    source: PairSource
    episode_ids: tuple[str | None, str | None] = (None, None)
    weight: float = 1.0
