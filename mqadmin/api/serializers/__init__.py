"""The shapes of the documents, a file per subject. What is not known is null, never 0."""
