"""One file for each family of APIs, which registers its references in assay.registry."""
