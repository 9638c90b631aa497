"""Jobs on another server that speaks OpenPAI's API: a real OpenPAI, or another Pailot."""
