"""Builds the Python package: maturin's wheel of the module, with the command `ranway` beside it.

pip calls the functions (PEP 517). `cargo xtask package` runs it as a program:

    ranway_build.py add-command WHEEL COMMAND LIST LICENCES
    ranway_build.py sdist DIRECTORY
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import maturin

# The module alone: programs in editable installations come from `cargo build`.
from maturin import (  # noqa: F401
    build_editable,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).resolve().parent.parent
EXECUTABLE, DATA = 0o100755 << 16, 0o100644 << 16


def build_wheel(
    wheel_directory: str, config_settings: dict[str, object] | None = None, metadata_directory: str | None = None
) -> str:
    """Builds a wheel for this machine."""
    name: str = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    subprocess.run(["cargo", "build", "--locked", "--release", "--package", "ranway"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    with tempfile.TemporaryDirectory() as folder:
        command = Path(folder, "ranway")
        # Without the symbols of debuggers it has a quarter of the size.
        if shutil.which("strip"):
            subprocess.run(["strip", "-o", command, target / "release/ranway"], check=True)
        else:
            shutil.copy(target / "release/ranway", command)
        add_command(Path(wheel_directory, name), command)
    return name


def add_command(wheel: Path, command: Path, listed: Path | None = None, licences: Path | None = None) -> None:
    """Adds a program to the scripts of a wheel, which pip puts where the environment has its commands.

    The list of the program's libraries replaces maturin's, which is of the module alone and tells where it was built.
    """
    distribution = "-".join(wheel.name.split("-")[:2])
    name, record = f"{distribution}.data/scripts/{command.name}", f"{distribution}.dist-info/RECORD"
    lists = f"{distribution}.dist-info/sboms/"
    added = {name: (command.read_bytes(), EXECUTABLE)}
    if listed:
        added[f"{lists}{listed.name}"] = (listed.read_bytes(), DATA)
    if licences:
        added[f"{distribution}.dist-info/licenses/{licences.name}"] = (licences.read_bytes(), DATA)
    new = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        if name in old.namelist():
            raise SystemExit(f"{wheel}: it has {name} already")
        lines = [line for line in old.read(record).decode().splitlines() if not line.startswith(lists)]
        for entry in old.infolist():
            if entry.filename != record and not entry.filename.startswith(lists):
                out.writestr(entry, old.read(entry), zipfile.ZIP_DEFLATED)
        for path, (content, mode) in added.items():
            entry = zipfile.ZipInfo(path, old.getinfo(record).date_time)
            entry.external_attr = mode
            out.writestr(entry, content, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.insert(len(lines) - 1, f"{path},sha256={digest},{len(content)}")
        # The record is the last file: https://packaging.python.org/en/latest/specifications/binary-distribution-format
        out.writestr(old.getinfo(record), "\n".join(lines) + "\n", zipfile.ZIP_DEFLATED)
    new.replace(wheel)


def build_sdist(sdist_directory: str, config_settings: dict[str, object] | None = None) -> str:
    """Packs the files of the repository, as they are. The same files make the same bytes."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=False)
    names = sorted(name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file())
    if listed.returncode != 0 or not names:
        raise SystemExit(f"{ROOT}: not a git repository: its files are what a source distribution has")
    with tempfile.TemporaryDirectory() as folder:
        info = maturin.prepare_metadata_for_build_wheel(folder)
        metadata = Path(folder, info, "METADATA").read_bytes()
    prefix = info.removesuffix(".dist-info")
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", 315532800))  # 1980, the first year that wheels know
    path = Path(sdist_directory, f"{prefix}.tar.gz")
    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):

        def add(name: str, content: bytes, mode: int) -> None:
            entry = tarfile.TarInfo(f"{prefix}/{name}")
            entry.size, entry.mode, entry.mtime = len(content), mode, epoch
            archive.addfile(entry, io.BytesIO(content))

        add("PKG-INFO", metadata, 0o644)
        for name in names:
            file_mode = 0o755 if os.access(ROOT / name, os.X_OK) else 0o644
            add(name, (ROOT / name).read_bytes(), file_mode)
    return path.name


def main() -> None:
    """Runs a step of `cargo xtask package`."""
    match sys.argv[1:]:
        case ["add-command", *paths] if len(paths) == 4:
            add_command(*map(Path, paths))
        case ["sdist", directory]:
            os.chdir(ROOT)
            print(build_sdist(directory))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
