"""A server that runs any party program, each session in a process of its own."""
