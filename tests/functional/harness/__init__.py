"""Real clients and real origins for the functional tests (standard library only)."""
