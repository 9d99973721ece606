"""Laws of the noise that mechanisms add, and how much of it a guarantee takes."""
