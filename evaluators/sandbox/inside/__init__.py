"""What runs inside the sandbox: standard library only, shipped to the worker as source text."""
