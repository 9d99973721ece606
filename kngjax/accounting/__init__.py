"""Accounts for the privacy that releases cost: guarantees, each for an adjacency, their conversions and composition."""

from kngjax.accounting.accountants import advanced_epsilon as advanced_epsilon
from kngjax.accounting.accountants import compare as compare
from kngjax.accounting.adjacency import Adjacency as Adjacency
from kngjax.accounting.conversions import zcdp_rho as zcdp_rho
from kngjax.accounting.guarantees import Guarantee as Guarantee
from kngjax.accounting.kinds import Kind as Kind
