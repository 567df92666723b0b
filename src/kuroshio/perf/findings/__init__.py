"""Findings: the decision table as small rules, each with its evidence and what it could save."""
