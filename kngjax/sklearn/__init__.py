"""Private regressions as estimators for scikit-learn: `import kngjax.sklearn`, which alone loads scikit-learn."""

from kngjax.sklearn.estimators import PrivateLinearRegressor as PrivateLinearRegressor
from kngjax.sklearn.estimators import PrivateLogisticRegression as PrivateLogisticRegression
from kngjax.sklearn.estimators import PrivatePoissonRegressor as PrivatePoissonRegressor
from kngjax.sklearn.estimators import PrivateQuantileRegressor as PrivateQuantileRegressor
from kngjax.sklearn.estimators import PrivateRobustRegressor as PrivateRobustRegressor
from kngjax.sklearn.paid_fits import UncountedFits as UncountedFits
from kngjax.sklearn.private_search import PrivateSearch as PrivateSearch
from kngjax.sklearn.public_pipeline import PublicPipeline as PublicPipeline
from kngjax.sklearn.public_terms import PublicTerms as PublicTerms
