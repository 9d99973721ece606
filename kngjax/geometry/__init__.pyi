from .feature_hulls import FeatureHull as FeatureHull
from .norms import k_norm_noise as k_norm_noise
