"""Losses ℓ(θ; record), each written for one record, with the facts that the sensitivity proofs rest on."""
