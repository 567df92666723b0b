"""A diagnosis as words in the terminal, as JSON, and as one page of HTML."""
