"""`cbobench check`: the laws that every algorithm and every problem obeys, a user's own as well as
ours.

`methods` holds the laws of algorithms, `problems` those of problems; `trial` plays a class on small
problems, and `report` runs the laws. The tests run the same laws.
"""
