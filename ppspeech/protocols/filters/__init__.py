"""Personal filters, learned over a network."""
