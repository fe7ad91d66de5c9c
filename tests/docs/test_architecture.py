"""docs/explanation/architecture.md says where the types and the folders of the code are."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/explanation/architecture.md").read_text()
DEFINED = r"^(class|struct|table) {name}\b"


def test_a_case_is_one_of_ten_types_and_each_is_where_the_page_says():
    types = re.findall(r"^\| `(\w+)` \|.*\| `([^`:]+):(\d+)` \|$", PAGE, re.M)
    assert 5 <= len(types) <= 10
    for name, file, number in types:
        lines = (ROOT / file).read_text().splitlines()
        found = [i for i, line in enumerate(lines, 1) if re.match(DEFINED.format(name=name), line)]
        assert int(number) in found, f"{file}: {name} is in line {found}, the page says {number}"


def test_the_table_of_folders_has_every_layer():
    layers = re.search(r"set\(ASSAY_LAYERS(.*?)\)", (ROOT / "cmake/AssayModule.cmake").read_text(), re.S)
    assert layers
    folders = {layer.split("/")[0] for layer in layers[1].split()}
    assert set(re.findall(r"^\| `src/(\w+)` \|", PAGE, re.M)) == folders
