"""The part of assay that lives in a framework's own Python: lanes and the API tables."""
