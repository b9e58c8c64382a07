"""Both sides in one run, a ratio at the end."""
