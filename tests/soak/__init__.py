"""An hour of everything at once, and a judgement of what it left: make soak."""
