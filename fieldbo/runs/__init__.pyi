from .folder import begin as begin
from .load import load_run as load_run
from .loop import BrokenOffError as BrokenOffError
from .loop import Interrupted as Interrupted
from .record.record import Record as Record
from .runner import resume as resume
from .runner import run as run
from .state import RunState as RunState
