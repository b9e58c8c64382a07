"""The tables, as numbered migrations: each brings the schema from the one before it.

What happened is only ever appended: triggers refuse to change or delete it. An episode's own row
holds where it stands (its end, its newest evaluation). Ids that outlive their row elsewhere have
no foreign key: a policy lives in the registry, and an imported fork may come without its parent.
"""

from __future__ import annotations

from sqlite_utils import Database, Migrations

APPLICATION_ID = 0x53574545  # "SWEE": how our files are told from other SQLite files

MIGRATIONS = Migrations("sweet")

_LOG = """
CREATE TABLE tasks (
  seq INTEGER PRIMARY KEY,  -- order of arrival
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,       -- backend or frontend
  description TEXT NOT NULL,
  split TEXT NOT NULL,
  source TEXT NOT NULL      -- the task set
) STRICT;
CREATE INDEX tasks_set ON tasks (source, split);

CREATE TABLE hidden_info (  -- apart from tasks, so that no query of tasks can show it
  task_id TEXT PRIMARY KEY REFERENCES tasks (id),
  reference TEXT NOT NULL,
  test_calls TEXT NOT NULL  -- JSON list
) STRICT;

CREATE TABLE episodes (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  task_id TEXT NOT NULL REFERENCES tasks (id),
  policy_id TEXT NOT NULL,
  collaborator TEXT NOT NULL,  -- person, scripted, llm:<model>
  seed INTEGER NOT NULL,
  max_turns INTEGER NOT NULL CHECK (max_turns > 0),
  created_at TEXT NOT NULL,    -- ISO 8601, UTC, everywhere
  parent_id TEXT,              -- of a fork
  forked_at INTEGER,           -- its first turn that differs from the parent's
  fork_kind TEXT,              -- retry, action, reply
  fork_key TEXT UNIQUE,        -- of the request that made it
  stop_reason TEXT,            -- NULL while in progress
  ended_as TEXT,               -- the stop reason it had before it was replaced
  ended_at TEXT,
  artifact TEXT,
  error TEXT,
  evaluation_seq INTEGER REFERENCES evaluations (seq)  -- the newest
) STRICT;
CREATE INDEX episodes_task ON episodes (task_id);
CREATE INDEX episodes_policy ON episodes (policy_id);
CREATE INDEX episodes_parent ON episodes (parent_id);
CREATE INDEX episodes_created ON episodes (created_at, seq);

CREATE TABLE turns (
  seq INTEGER PRIMARY KEY,
  episode_id TEXT NOT NULL REFERENCES episodes (id),
  turn_index INTEGER NOT NULL CHECK (turn_index >= 0),
  raw TEXT NOT NULL,          -- what the agent's model wrote, verbatim
  message TEXT NOT NULL,      -- what of it the collaborator sees
  is_final INTEGER NOT NULL CHECK (is_final IN (0, 1)),
  artifact TEXT,
  prompt_tokens INTEGER,
  completion_tokens INTEGER,
  duration_ms REAL,
  created_at TEXT NOT NULL,
  action_key TEXT,            -- of the request that brought it
  reply TEXT,                 -- NULL until the collaborator has replied; set once
  reply_duration_ms REAL,
  replied_at TEXT,
  reply_key TEXT,
  UNIQUE (episode_id, turn_index),
  UNIQUE (episode_id, action_key),
  UNIQUE (episode_id, reply_key)
) STRICT;

CREATE TABLE advantages (     -- what a critic said of a turn; the newest counts
  seq INTEGER PRIMARY KEY,
  episode_id TEXT NOT NULL,
  turn_index INTEGER NOT NULL,
  critic TEXT NOT NULL,
  value REAL NOT NULL,
  created_at TEXT NOT NULL,
  FOREIGN KEY (episode_id, turn_index) REFERENCES turns (episode_id, turn_index)
) STRICT;
CREATE INDEX advantages_turn ON advantages (episode_id, turn_index);

CREATE TABLE evaluations (
  seq INTEGER PRIMARY KEY,
  episode_id TEXT NOT NULL REFERENCES episodes (id),
  reward REAL CHECK (reward BETWEEN 0 AND 1),  -- NULL where the scoring itself failed
  components TEXT,            -- JSON object
  evaluator TEXT,
  verdict TEXT NOT NULL,
  sandbox_level TEXT,
  error TEXT,
  created_at TEXT NOT NULL
) STRICT;
CREATE INDEX evaluations_episode ON evaluations (episode_id);

CREATE TABLE test_results (
  evaluation_seq INTEGER NOT NULL REFERENCES evaluations (seq),
  test_index INTEGER NOT NULL,
  call TEXT NOT NULL,
  expected TEXT,
  got TEXT,
  verdict TEXT NOT NULL,
  duration_ms REAL,
  reason TEXT NOT NULL,
  PRIMARY KEY (evaluation_seq, test_index)
) STRICT;

CREATE TABLE feedback (
  seq INTEGER PRIMARY KEY,
  episode_id TEXT NOT NULL REFERENCES episodes (id),
  turn_index INTEGER,         -- NULL: the whole episode
  rating REAL CHECK (rating BETWEEN -1 AND 1),
  tags TEXT NOT NULL,         -- JSON list
  comment TEXT NOT NULL,
  key TEXT UNIQUE,            -- of the request that brought it
  created_at TEXT NOT NULL,
  FOREIGN KEY (episode_id, turn_index) REFERENCES turns (episode_id, turn_index)
) STRICT;
CREATE INDEX feedback_turn ON feedback (episode_id, turn_index);

CREATE VIEW ratings AS        -- the newest rating of each turn and each whole episode
SELECT episode_id, turn_index, rating FROM feedback AS f
WHERE rating IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM feedback AS later
  WHERE later.episode_id = f.episode_id AND later.turn_index IS f.turn_index
    AND later.rating IS NOT NULL AND later.seq > f.seq
);

CREATE TABLE failures (
  seq INTEGER PRIMARY KEY,
  episode_id TEXT NOT NULL REFERENCES episodes (id),
  turns INTEGER NOT NULL,
  error TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT;
CREATE INDEX failures_episode ON failures (episode_id);

CREATE TRIGGER turns_are_said_once BEFORE UPDATE ON turns
WHEN old.reply IS NOT NULL OR new.raw IS NOT old.raw OR new.message IS NOT old.message
  OR new.turn_index IS NOT old.turn_index OR new.episode_id IS NOT old.episode_id
BEGIN SELECT raise(ABORT, 'what was said is not changed: make a fork'); END;
"""

_APPENDED = ("advantages", "evaluations", "test_results", "feedback", "failures")


@MIGRATIONS()
def m001_log(db: Database) -> None:
    """Tasks, episodes, turns, evaluations, feedback, failures."""
    db.executescript(_LOG)
    for table in _APPENDED:
        _refuse(db, table, "UPDATE")
    for table in (*_APPENDED, "turns", "episodes"):
        _refuse(db, table, "DELETE")


def _refuse(db: Database, table: str, what: str) -> None:
    db.execute(
        f"CREATE TRIGGER {table}_no_{what.lower()} BEFORE {what} ON {table} "
        "BEGIN SELECT raise(ABORT, 'the log is only appended to'); END"
    )


@MIGRATIONS()
def m002_search(db: Database) -> None:
    """Full-text search over what was said and over task descriptions."""
    words = "unicode61 remove_diacritics 2"
    db.table("turns").enable_fts(["raw", "reply"], create_triggers=True, tokenize=words)
    db.table("tasks").enable_fts(["description"], create_triggers=True, tokenize=words)


_BATCHES = """
CREATE TABLE batches (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  settings TEXT NOT NULL,     -- JSON object
  total INTEGER NOT NULL,
  host TEXT NOT NULL,         -- where its process runs
  process_id INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  stop_requested_at TEXT,
  ended_at TEXT,
  error TEXT
) STRICT;
ALTER TABLE episodes ADD COLUMN batch_id TEXT REFERENCES batches (id);
CREATE INDEX episodes_batch ON episodes (batch_id);

CREATE TABLE policies (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  base_model TEXT NOT NULL,
  adapter_path TEXT,
  parent_id TEXT REFERENCES policies (id),
  note TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT;
"""


@MIGRATIONS()
def m003_batches(db: Database) -> None:
    """Batches of simulated episodes, and the policy versions that were ever served."""
    db.executescript(_BATCHES)


_ROUNDS = """
CREATE TABLE rounds (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  algorithm TEXT NOT NULL,
  policy_id TEXT NOT NULL,    -- the parent
  settings TEXT NOT NULL,     -- JSON object
  host TEXT NOT NULL,         -- where its process runs, or ran last
  process_id INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  stage TEXT NOT NULL,        -- where it is, or was last
  done INTEGER NOT NULL,      -- of that stage's units
  total INTEGER NOT NULL,
  ended_at TEXT,
  error TEXT,
  version_id TEXT,            -- what came of it
  is_promoted INTEGER CHECK (is_promoted IN (0, 1)),
  figures TEXT                -- JSON object
) STRICT;

CREATE TABLE round_metrics (
  seq INTEGER PRIMARY KEY,
  round_id TEXT NOT NULL REFERENCES rounds (id),
  stage TEXT NOT NULL,
  step INTEGER NOT NULL,      -- updates of that stage, from 1
  name TEXT NOT NULL,
  value REAL NOT NULL,
  created_at TEXT NOT NULL,
  UNIQUE (round_id, stage, step, name)
) STRICT;
"""


@MIGRATIONS()
def m004_rounds(db: Database) -> None:
    """Rounds of training, and the numbers they give while they train."""
    db.executescript(_ROUNDS)
    _refuse(db, "round_metrics", "UPDATE")
    for table in ("round_metrics", "rounds"):
        _refuse(db, table, "DELETE")


_SCHEDULE = """
ALTER TABLE rounds ADD COLUMN process_born REAL;  -- seconds after the machine's start
ALTER TABLE rounds ADD COLUMN keep_stage TEXT;    -- to end early with what it has
ALTER TABLE rounds ADD COLUMN stage_at TEXT;      -- when the stage began
ALTER TABLE rounds ADD COLUMN counted_at TEXT;    -- when its units were first counted
ALTER TABLE rounds ADD COLUMN counted_from INTEGER;

CREATE TABLE schedule (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  every_episodes INTEGER NOT NULL CHECK (every_episodes >= 0),
  every_hours REAL NOT NULL CHECK (every_hours >= 0),
  settings TEXT NOT NULL,     -- JSON object
  since TEXT,                 -- episodes count from here on
  next_at TEXT,
  last_at TEXT,
  last_round_id TEXT,
  last_error TEXT NOT NULL
) STRICT;
"""


@MIGRATIONS()
def m005_schedule(db: Database) -> None:
    """Rounds that start by themselves; which process runs one, and how fast."""
    db.executescript(_SCHEDULE)


_CANDIDATES = """
CREATE TABLE rankings (       -- what a critic said of a turn's candidates; its newest counts
  seq INTEGER PRIMARY KEY,
  episode_id TEXT NOT NULL,
  turn_index INTEGER NOT NULL,
  critic TEXT NOT NULL,       -- as in advantages
  created_at TEXT NOT NULL,
  FOREIGN KEY (episode_id, turn_index) REFERENCES turns (episode_id, turn_index)
) STRICT;
CREATE INDEX rankings_turn ON rankings (episode_id, turn_index);

CREATE TABLE candidates (
  ranking_seq INTEGER NOT NULL REFERENCES rankings (seq),
  candidate_index INTEGER NOT NULL,  -- in the order they were drawn
  text TEXT NOT NULL,         -- the message, as the critic read it
  drawn INTEGER NOT NULL CHECK (drawn > 0),          -- how often
  is_ended INTEGER NOT NULL CHECK (is_ended IN (0, 1)),  -- 0: the token limit cut it
  score REAL NOT NULL,
  chosen INTEGER NOT NULL CHECK (chosen >= 0),       -- in so many pairs
  rejected INTEGER NOT NULL CHECK (rejected >= 0),   -- the same
  PRIMARY KEY (ranking_seq, candidate_index)
) STRICT;
"""


@MIGRATIONS()
def m006_candidates(db: Database) -> None:
    """What else could have been said at a turn, as critics ranked it."""
    db.executescript(_CANDIDATES)
    for table in ("rankings", "candidates"):
        for what in ("UPDATE", "DELETE"):
            _refuse(db, table, what)


_COMPARISONS = """
CREATE TABLE comparisons (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  task_id TEXT NOT NULL REFERENCES tasks (id),
  left_id TEXT NOT NULL REFERENCES episodes (id),  -- drawn
  right_id TEXT NOT NULL REFERENCES episodes (id),
  is_blind INTEGER NOT NULL CHECK (is_blind IN (0, 1)),
  key TEXT UNIQUE,            -- of the request that made it
  created_at TEXT NOT NULL,
  CHECK (left_id <> right_id)
) STRICT;
CREATE INDEX comparisons_left ON comparisons (left_id);
CREATE INDEX comparisons_right ON comparisons (right_id);

CREATE TABLE votes (
  seq INTEGER PRIMARY KEY,
  comparison_id TEXT NOT NULL REFERENCES comparisons (id),
  choice TEXT NOT NULL
    CHECK (choice IN ('left', 'right', 'tie', 'both_bad', 'skip', 'failed')),
  voter TEXT NOT NULL,
  voter_kind TEXT NOT NULL CHECK (voter_kind IN ('person', 'judge')),
  reason TEXT NOT NULL,
  side_named INTEGER NOT NULL CHECK (side_named IN (0, 1)),  -- a side said its own name
  key TEXT UNIQUE,            -- of the request that brought it
  created_at TEXT NOT NULL,
  UNIQUE (comparison_id, voter)
) STRICT;

CREATE TABLE preferences (    -- pairs that came from elsewhere; those of this log are derived
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,    -- of its content
  content TEXT NOT NULL,      -- JSON object, as exports write it
  created_at TEXT NOT NULL
) STRICT;
"""


@MIGRATIONS()
def m007_comparisons(db: Database) -> None:
    """Comparisons of two episodes, votes on them, and preference pairs that were imported."""
    db.executescript(_COMPARISONS)
    for table in ("comparisons", "votes", "preferences"):
        for what in ("UPDATE", "DELETE"):
            _refuse(db, table, what)


def migration_names() -> list[str]:
    """All migrations of this version, oldest first; their number is the schema's version."""
    with Database(memory=True) as empty:
        return [migration.name for migration in MIGRATIONS.pending(empty)]
