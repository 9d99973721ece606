"""Plants small bugs and says which of them the tests see."""
