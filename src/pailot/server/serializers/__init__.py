"""From what we know to what OpenPAI would say of it: pure functions from records to JSON."""
