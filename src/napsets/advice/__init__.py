"""Help in choosing and understanding: what to expect on a graph, why one node's set is what it is, theory."""
