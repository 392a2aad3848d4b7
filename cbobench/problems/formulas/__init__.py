"""Problems given by formulas on a box, with their reference optima."""
