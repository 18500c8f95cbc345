from .load import load_run as load_run
from .runner import BrokenOffError as BrokenOffError
from .runner import Interrupted as Interrupted
from .runner import resume as resume
from .runner import run as run
from .record.record import Record as Record
from .folder import begin as begin
from .state import Course as Course
