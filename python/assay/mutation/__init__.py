"""Planted faults: how sharp is the judge? `assay mutate` is the only one that asks for them.

A lane under test that is given a job with a fault runs the case as it is and once more with the fault, and
hands over what came of the second. Where not a bit differs between the two there is no mutant; that is
measured here and said instead of a result. So is a fault that the case has no place for.

The choice of element, input and direction is a pure function of the run's seed, the case and the fault.
"""
