"""Set-up of a machine, run by make."""
