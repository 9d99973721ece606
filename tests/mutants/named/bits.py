"""Names slips of random bits: used twice, seeded, fewer than they should be."""

from tests.mutants.named.slip import Slip
from tests.mutants.syntax import assigned, called, reference

SLIPS = (
    Slip("half of a key repeats the other half", "secure_key", called("urandom", "os.urandom(16) * 2")),
    Slip(
        "the key of a direct draw is seeded",
        "DirectDraw.draw",
        called("key_from", "__import__('kngjax').research_key(0)"),
    ),
    Slip("the key of a chain is seeded", "ChainDraw.draw", called("key_from", "__import__('kngjax').research_key(0)")),
    Slip(
        "draws of which every rounding is proved are seeded",
        "release:drawn",
        reference("randbits", "__import__('random').Random(1).getrandbits"),
    ),
    Slip("radius and direction of noise share a key", "k_norm_noise", reference("ball_key", "radius_key")),
    Slip(
        "noise of the output has the key of the objective's",
        "ObjectivePerturbation.draws",
        reference("output_key", "tilt_key"),
    ),
    Slip("further digits are those of another number", "Uniform.ball", assigned("_number", "self._bits(digits)")),
    Slip(
        "one offset rounds all coordinates",
        "Rounding.__call__",
        called("rounded", "self.rounded({0}, [_offset()] * len(self.centre))"),
    ),
)
