"""Import every module of the installed marginlab and compare its list and its data with the source tree."""

import importlib
import os
import pkgutil
import sys
from pathlib import Path

import marginlab

source = Path(sys.argv[1])
installed = Path(marginlab.__file__).parent
if "site-packages" not in str(installed):
    sys.exit(f"marginlab is not the installed wheel but {installed}")

found = {m.name for m in pkgutil.walk_packages(marginlab.__path__, "marginlab.")}
files = [Path(folder) / name for folder, _, names in os.walk(source, followlinks=True) for name in names]
files = [f for f in files if "__pycache__" not in f.parts and f.suffix not in {".pyc", ".nbi", ".nbc"}]
expected = set()
for file in (f for f in files if f.suffix == ".py"):
    parts = file.relative_to(source).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    if parts:
        expected.add(".".join(("marginlab", *parts)))
if found != expected:
    sys.exit(f"only in the wheel: {sorted(found - expected)}; only in the source: {sorted(expected - found)}")

data = {str(f.relative_to(source)) for f in files if f.suffix != ".py"}
missing = sorted(name for name in data if not (installed / name).is_file())
if missing:
    sys.exit(f"data files that the wheel lacks: {missing}")

for name in sorted(found):
    if name != "marginlab.__main__":
        importlib.import_module(name)
print(f"{len(found)} modules and {len(data)} data files, as in the source tree; every module imports")
