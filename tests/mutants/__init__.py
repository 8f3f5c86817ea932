"""Security mutants: changes that break what protects someone, each of which some test must notice."""
