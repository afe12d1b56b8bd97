"""How much lag a group may have: by name, by pattern, by its listeners' code, by cluster; with their history."""
