"""How long messages took from the broker that stored them to the end of their listener's call, counted by hour."""
