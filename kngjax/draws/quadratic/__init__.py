"""θ with density ∝ exp(-‖Aθ - b‖) on Θ, in real arithmetic: every decision is taken in balls that hold the numbers."""
