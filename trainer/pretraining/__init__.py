"""The embedded models, from nothing: their dialogues, tokenizers, training and figures."""
