"""Independent draws from the joint density of curves of several levels."""
