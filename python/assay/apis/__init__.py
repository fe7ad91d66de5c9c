"""One file per family of APIs; each registers what it knows in assay.registry."""
