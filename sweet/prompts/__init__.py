"""Our own wording, one file a role and task kind."""
