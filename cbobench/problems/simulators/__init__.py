"""Problems given by a simulator that is run at each action."""
