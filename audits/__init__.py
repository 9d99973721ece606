"""The laboratory of attacks on kngjax: `python -m audits` in a checkout measures the figures of docs/promises.md anew.

Attacks on a mechanism of one's own are in the package, `kngjax.audit`.
"""
