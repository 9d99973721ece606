"""The four ways from records to one released value, each of which admits, certifies, prepares and draws."""
