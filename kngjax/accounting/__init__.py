"""What a release costs: guarantees and the adjacency that they are stated for."""
