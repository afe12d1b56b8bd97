"""What is known of clusters: models, their vocabulary, and what pages read of them."""
