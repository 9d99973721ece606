"""Views say what the releases of one kind of analysis mean: `kngjax.Results` has the attributes of its own view."""

from kngjax.study.views.column_views import EstimateView as EstimateView
from kngjax.study.views.column_views import RefusedView as RefusedView
from kngjax.study.views.curve_views import RegressionView as RegressionView
from kngjax.study.views.groups_view import GroupsView as GroupsView
from kngjax.study.views.moment_view import MomentView as MomentView
from kngjax.study.views.process_view import ProcessView as ProcessView
from kngjax.study.views.table_view import TableView as TableView

__all__ = ["EstimateView", "GroupsView", "MomentView", "ProcessView", "RefusedView", "RegressionView", "TableView"]
