"""An exported file and its card, put into a dataset repository of the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from sweet.errors import ConfigError, StoreError, boundary
from sweet.exchange.card import CARD


def push(path: Path, card: str, repo: str, *, public: bool = False) -> str:
    """The address of the commit. The repository is made, private unless `public`, if need be.

    Raises: ConfigError without a token or with a wrong name, StoreError where the hub refuses or
    can't be reached.
    """
    from huggingface_hub import CommitOperationAdd, HfApi, get_token
    from huggingface_hub.utils import HFValidationError

    owner, _, name = repo.partition("/")
    if not owner or not name or "/" in name:
        raise ConfigError(f"The repository is {repo!r}; write it like your-name/your-dataset.")
    if get_token() is None:
        raise ConfigError(
            "The hub wants a token and there is none. Make one that may write at "
            "https://huggingface.co/settings/tokens, then set HF_TOKEN or run `hf auth login`. "
            f"The export itself is in {path}."
        )
    hub = HfApi()
    files = [
        CommitOperationAdd(path.name, str(path)),
        CommitOperationAdd(CARD, card.encode()),
    ]
    with boundary(StoreError, f"Cannot push {path} to {repo} at {hub.endpoint} (the file is kept)"):
        try:
            hub.create_repo(repo, repo_type="dataset", private=not public, exist_ok=True)
        except HFValidationError as e:
            raise ConfigError(f"The repository's name {repo!r} is not valid: {e}") from e
        done = hub.create_commit(
            repo, files, repo_type="dataset", commit_message=f"Add {path.name}"
        )
    return str(done.commit_url)
