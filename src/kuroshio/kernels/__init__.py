"""One operation a module, each written once as an operation list and checked against the oracle."""
