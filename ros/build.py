"""Build fieldbo's ROS 2 messages into the current virtual environment, for ROS 2 from PyPI.

If ROS 2 is installed on the system, use ``colcon build --packages-select fieldbo_msgs`` instead.
Otherwise run, after ``pip install 'fieldbo[ros2]' -r ros/requirements-build.txt``::

    .venv-ros/bin/python ros/build.py            # builds ros/fieldbo_msgs
    .venv-ros/bin/python ros/build.py PACKAGE... # builds other packages of messages

You need a C++ compiler and Python's headers. The messages are installed next to those of the wheels, so that
``import fieldbo_msgs.action`` works without sourcing anything. You can run this again at any time.

The wheels' CMake files name two folders of the machine that built them, those of Python's and of numpy's
headers. CMake stops if they are missing, so this script corrects them first.
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
    """Replace the folders of headers by those of this machine; corrected files stay as they are."""
    for file in PREFIX.glob("share/*/cmake/*_pyExport.cmake"):
        text = corrected = file.read_text()
        for there, here in FOLDERS.items():
            corrected = re.sub(there, here, corrected)
        if corrected != text:
            file.unlink()  # it may be a link into an installer's cache
            file.write_text(corrected)


def build(package: Path) -> None:
    """Configure, build and install one package of messages."""
    cmake = shutil.which("cmake", path=PREFIX / "bin") or "cmake"
    ninja = shutil.which("ninja", path=PREFIX / "bin") or "ninja"
    with tempfile.TemporaryDirectory() as folder:
        configure = [cmake, "-S", package, "-B", folder, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
        configure += [f"-DCMAKE_INSTALL_PREFIX={PREFIX}", f"-DCMAKE_PREFIX_PATH={PREFIX}"]
        configure += [f"-DPython3_EXECUTABLE={sys.executable}"]  # otherwise CMake picks the system's Python
        for command in (configure, [cmake, "--build", folder], [cmake, "--install", folder]):
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{done.stdout}{done.stderr}\ncannot build {package.name}: {command[:2]} failed")


def main() -> None:
    """Build the packages named on the command line, or fieldbo_msgs."""
    if sys.prefix == sys.base_prefix:
        sys.exit("run this with the Python of a virtual environment: .venv-ros/bin/python ros/build.py")
    correct_folders()
    for package in [Path(folder) for folder in sys.argv[1:]] or [Path(__file__).parent / "fieldbo_msgs"]:
        build(package.resolve())
        print(f"installed {package.name} in {PREFIX}")


if __name__ == "__main__":
    main()
