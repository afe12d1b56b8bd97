"""Topics and groups of a cluster as a YAML file: exported, compared with what is there, and applied by the actions."""
