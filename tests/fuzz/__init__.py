"""Every door by which bytes of others come in, under bytes that nobody sends who follows the rules."""
