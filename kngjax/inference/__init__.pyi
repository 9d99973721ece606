from .intervals import Interval as Interval
from .intervals import NoInterval as NoInterval
from .previews import Preview as Preview
from .wald_tests import WaldTest as WaldTest
from .with_intervals import ReleaseWithIntervals as ReleaseWithIntervals
