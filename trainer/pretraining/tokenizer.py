"""The embedded model's tokenizer: a word a token, the same words in speech and in identifiers.

`base fee` and `base_fee` share their word tokens (spaces are implied, the underscore is a joiner),
so a detail that is asked for in words is found again by name in code. Unknown words fall back to
pairs of letters: short enough to be copied, and seldom twice in a word. It is an ordinary
`tokenizers` file that transformers and vLLM load.
"""

from __future__ import annotations

import random
import re
import string
from collections import Counter
from functools import cache

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from trainer.pretraining.demonstrations import CAREFUL, HASTY, MEDIUM, dialogue, random_spec

SPECIAL = ("<pad>", "<bos>", "<end>", "<user>", "<agent>", "<ref>", "<unk>")
_NEWLINES = {"⏎2": "\n        ", "⏎1": "\n    ", "⏎0": "\n"}
_WORD = r"⏎[0-9]|[A-Za-z]+|[0-9]+|[<>=!+*/-]=|//|\*\*|[^\sA-Za-z0-9]"

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'reference' %}<ref>{{ m.content }}<end>"
    "{% elif m.role == 'user' %}<user>{{ m.content | lower | replace('<', '< ') }}<end>"
    "{% elif m.role == 'assistant' %}<agent>{% generation %}{{ m.content }}<end>"
    "{% endgeneration %}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<agent>{% endif %}"
)
"""System messages are left out: the model was made on bare dialogues. What a person writes is
lower-cased, so that "YES" is "yes", and cannot contain a special token."""


def build_tokenizer(context_tokens: int) -> PreTrainedTokenizerFast:
    """The tokenizer, with its chat template, for a model with this context length."""
    vocabulary = {token: i for i, token in enumerate(_vocabulary())}
    tokenizer = Tokenizer(
        models.WordPiece(vocabulary, unk_token="<unk>", continuing_subword_prefix="##")
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), *(normalizers.Replace(t, k) for k, t in _NEWLINES.items())]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_WORD), "removed", invert=True)
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.WordPiece(prefix="##", cleanup=False),
            decoders.Fuse(),
            *(decoders.Replace(Regex(f" ?{k} ?"), t) for k, t in _NEWLINES.items()),
            decoders.Replace(Regex(r" (?=[,.:;)?!])"), ""),
            decoders.Replace(Regex(r"(?<=[A-Za-z]) (?=\()"), ""),
            decoders.Replace(Regex(r"(?<=\() "), ""),
            decoders.Replace(Regex(" ?_ ?"), "_"),
            decoders.Replace(Regex(r"(?<=\d\.) (?=\d)"), ""),
            decoders.Replace(Regex(r"(?<=[a-z]\.) (?=[a-z])"), ""),
        ]
    )
    return for_dialogues(tokenizer, CHAT_TEMPLATE, context_tokens)


def for_dialogues(
    tokenizer: Tokenizer, chat_template: str, context_tokens: int
) -> PreTrainedTokenizerFast:
    """`tokenizer` as transformers loads it, with the special tokens of a dialogue."""
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<bos>",
        eos_token="<end>",
        pad_token="<pad>",
        unk_token="<unk>",
        additional_special_tokens=["<user>", "<agent>", "<ref>"],
        model_max_length=context_tokens,
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = chat_template
    return fast


def _vocabulary() -> list[str]:
    """Special tokens, letters, their pairs, numbers, and every word common in the dialogues."""
    marks = [*string.punctuation, *["<=", ">=", "==", "!=", "+=", "-=", "*=", "/=", "//", "**"]]
    pieces = list(string.ascii_letters + string.digits)
    numbers = [str(n) for n in (*range(10, 200), *range(200, 2001, 50))]
    counts = _word_counts()
    words = [w for w, n in counts.most_common() if n >= 20 and len(w) > 1]
    pieces += _pairs({w: n for w, n in counts.items() if n < 20})
    tokens = [*SPECIAL, *_NEWLINES, *marks, *pieces, *(f"##{p}" for p in pieces), *numbers, *words]
    return list(dict.fromkeys(tokens))


def _pairs(rare: dict[str, int]) -> list[str]:
    """Pairs of letters common in words that have no token of their own."""
    counts: Counter[str] = Counter()
    for word, n in rare.items():
        for at in range(len(word) - 1):
            counts[word[at : at + 2]] += n
    return [pair for pair, n in counts.most_common() if n >= 200]


@cache
def _word_counts() -> Counter[str]:
    rng = random.Random(0)
    counts: Counter[str] = Counter()
    for i in range(30_000):
        for message in dialogue(random_spec(rng), (CAREFUL, MEDIUM, HASTY)[i % 3], rng):
            text = message.content.lower() if message.role == "user" else message.content
            counts.update(re.findall(r"[A-Za-z]+", text))
    return counts
