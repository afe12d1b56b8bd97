"""Groups whose instances this project's own workers run: what is shown of them, and how many of them run."""
