"""Tables: what a run holds, who is better than whom, and the formats that they are written in."""
