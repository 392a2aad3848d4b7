"""A suite that is played while faults are injected, and held against an undisturbed run."""
