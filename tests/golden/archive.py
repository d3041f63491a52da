"""Archives of folders that can be unpacked elsewhere.

Spark's checkpoints name the folders of their sources. In an archive a placeholder stands for the
folder that was packed. Checksums of changed files would not fit, so none are kept; Spark does
without them.
"""

import zipfile
from pathlib import Path

PLACEHOLDER = b"/straggler-golden-folder"
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Modification time of every file: the earliest that the format knows."""


def pack(folder: Path, archive: Path) -> None:
    """Write all files of a folder into an archive.

    Raise ``ValueError`` if a file that is not text names the folder.
    """
    named = str(folder).encode()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as written:
        for path in sorted(folder.rglob("*")):
            if not path.is_file() or path.name.endswith(".crc"):
                continue
            content = path.read_bytes()
            if named in content:
                content.decode("utf-8")
                content = content.replace(named, PLACEHOLDER)
            name = path.relative_to(folder).as_posix()
            written.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)


def unpack(archive: Path, folder: Path) -> None:
    """Write all files of an archive into a folder, which stands for the one that was packed."""
    with zipfile.ZipFile(archive) as read:
        for name in read.namelist():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(read.read(name).replace(PLACEHOLDER, str(folder).encode()))
