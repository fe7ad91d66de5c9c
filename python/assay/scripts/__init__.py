"""Scripts for people: Python that needs only one framework and shows what a case does in it.

`python -m assay.scripts` answers src/report/scripts.cc: JSON with one request for each script.
"""
