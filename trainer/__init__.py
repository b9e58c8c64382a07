"""Makes models: pretraining, SWEET-RL's losses, an episode in one forward pass."""
