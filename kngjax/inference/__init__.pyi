from .augmentation import augmented_posterior as augmented_posterior
from .covariances import IndependentErrors as IndependentErrors
from .covariances import PublicDesign as PublicDesign
from .intervals import Interval as Interval
from .intervals import NoInterval as NoInterval
from .previews import Preview as Preview
from .released_designs import ReleasedDesign as ReleasedDesign
from .with_intervals import ReleaseWithIntervals as ReleaseWithIntervals
