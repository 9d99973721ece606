"""θ with density ∝ exp(-‖G(θ)‖) on Θ for few coefficients: exact rejection from boxes, rounded once."""
