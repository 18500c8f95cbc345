"""Build fieldbo's ROS 2 messages into the virtual environment that runs this, where ROS 2 came from PyPI.

With ROS 2 of the system this is not needed: ``colcon build --packages-select fieldbo_msgs`` does it.
Here, after ``pip install 'fieldbo[ros2]' -r ros/requirements-build.txt``::

    .venv-ros/bin/python ros/build.py            # ros/fieldbo_msgs
    .venv-ros/bin/python ros/build.py PACKAGE... # other folders of messages

A C++ compiler and Python's headers must be there. What is built lies where the wheels have put theirs,
so that ``import fieldbo_msgs.action`` works without anything being sourced. It may be run again at any time.

The wheels' CMake files name two folders of the machine on which they were built: that of Python's headers and
that of numpy's. CMake refuses to go on where they are missing, so both are corrected first.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy

PREFIX = Path(sys.prefix)
FOLDERS = {
    r"/opt/python/[^;\"]*/numpy/_core/include": numpy.get_include(),
    r"/opt/python/[^;\"]*/include/python3\.\d+": sysconfig.get_path("include"),
}


def correct_folders() -> None:
    """Name the folders of headers as they are here; those corrected before are left as they are."""
    for file in PREFIX.glob("share/*/cmake/*_pyExport.cmake"):
        text = corrected = file.read_text()
        for there, here in FOLDERS.items():
            corrected = re.sub(there, here, corrected)
        if corrected != text:
            file.write_text(corrected)


def build(package: Path) -> None:
    """Configure, build and install one package of messages."""
    cmake = shutil.which("cmake", path=PREFIX / "bin") or "cmake"
    ninja = shutil.which("ninja", path=PREFIX / "bin") or "ninja"
    with tempfile.TemporaryDirectory() as folder:
        configure = [cmake, "-S", package, "-B", folder, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
        configure += [f"-DCMAKE_INSTALL_PREFIX={PREFIX}", f"-DCMAKE_PREFIX_PATH={PREFIX}"]
        configure += [f"-DPython3_EXECUTABLE={sys.executable}"]  # else CMake takes the system's Python
        for command in (configure, [cmake, "--build", folder], [cmake, "--install", folder]):
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{done.stdout}{done.stderr}\n{package.name} was not built: {command[:2]} failed")


def main() -> None:
    """Build the packages named on the command line, or fieldbo_msgs."""
    if sys.prefix == sys.base_prefix:
        sys.exit("run this with the Python of a virtual environment: .venv-ros/bin/python ros/build.py")
    correct_folders()
    for package in [Path(one) for one in sys.argv[1:]] or [Path(__file__).parent / "fieldbo_msgs"]:
        build(package.resolve())
        print(f"{package.name} is in {PREFIX}")


if __name__ == "__main__":
    main()
