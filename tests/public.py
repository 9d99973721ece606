"""All public names: those of the modules that the top of the package names, and its own."""

import kngjax as kng

MODULES = (
    kng.owner,
    kng.sensitivity,
    kng.releases,
    kng.synthesis,
    kng.ledger,
    kng.inference,
    kng.geometry,
    kng.draws,
    kng.chains,
)
PUBLIC = {name: getattr(module, name) for module in (*MODULES, kng) for name in module.__all__}
