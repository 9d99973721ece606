"""Per-instance differential privacy (Wang 2019): of given data, for each person in them and outside of them."""

from kngjax.owner.per_instance import facts as facts
from kngjax.owner.per_instance.everyone import ForAll as ForAll
from kngjax.owner.per_instance.privacy import per_instance_privacy as per_instance_privacy
from kngjax.owner.per_instance.report import PerInstanceReport as PerInstanceReport
from kngjax.owner.per_instance.report import PerInstanceSummary as PerInstanceSummary
