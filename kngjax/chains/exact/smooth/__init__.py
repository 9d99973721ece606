"""Exact draws of KNG with smooth losses, by rejection in the space of gradients z = ∇ℓ(θ)."""
