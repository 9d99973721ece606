"""Private regressions as estimators for scikit-learn: `import kngjax.sklearn`, which alone loads scikit-learn."""

from kngjax.sklearn.classifiers import PrivateLogisticRegression as PrivateLogisticRegression
from kngjax.sklearn.private_search import PrivateSearch as PrivateSearch
from kngjax.sklearn.public_pipeline import PublicPipeline as PublicPipeline
from kngjax.sklearn.public_terms import PublicTerms as PublicTerms
from kngjax.sklearn.regressors import PrivateLinearRegressor as PrivateLinearRegressor
from kngjax.sklearn.regressors import PrivatePoissonRegressor as PrivatePoissonRegressor
from kngjax.sklearn.regressors import PrivateQuantileRegressor as PrivateQuantileRegressor
from kngjax.sklearn.regressors import PrivateRobustRegressor as PrivateRobustRegressor
from kngjax.sklearn.uncounted_fits import UncountedFits as UncountedFits
