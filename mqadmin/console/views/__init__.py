"""One module per page or family of pages. Views read selectors, call actions, and choose a template."""
