"""Pages as they are drawn: what differs between two, how that is said, and the pictures kept."""
