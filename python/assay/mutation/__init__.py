"""Planted faults: how sharp is the judge? Only `assay mutate` uses them.

A test lane that gets a job with a fault runs the case without and with the fault, and returns the results of
the second run. If no bit differs there is no mutant; the lane reports that instead of a result. It also
reports a case that offers no place for the fault.

The choice of element, input and direction is a pure function of the run's seed, the case and the fault.
"""
