"""KNG with smooth losses in the space of gradients, drawn in real arithmetic and rounded once."""
