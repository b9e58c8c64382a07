"""The domain of Sweet Studio: tasks, episodes, models, the log."""
