"""Problems given by tables: readings per arm, and measured configurations."""
