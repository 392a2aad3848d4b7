"""What `cbobench check` looks at: the laws that every algorithm and every problem obeys, a user's own as well as ours.

`trial` plays a class on small problems; `methods`, `scores`, `peeking` and `growth` hold the laws of algorithms,
`problems` those of problems, `shared` what outlives a play; `report` runs them. The tests run the same laws.
"""
