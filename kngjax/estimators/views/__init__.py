"""Views say what the releases of one kind of analysis mean: `kngjax.Results` has the attributes of its own view."""

from kngjax.estimators.views.column_views import EstimateView as EstimateView
from kngjax.estimators.views.column_views import MomentView as MomentView
from kngjax.estimators.views.curve_views import ProcessView as ProcessView
from kngjax.estimators.views.curve_views import RegressionView as RegressionView
from kngjax.estimators.views.groups_view import GroupsView as GroupsView
from kngjax.estimators.views.table_view import TableView as TableView

__all__ = ["EstimateView", "GroupsView", "MomentView", "ProcessView", "RegressionView", "TableView"]
