from .folder import begin as begin
from .load import load_run as load_run
from .record.record import Record as Record
from .runner import BrokenOffError as BrokenOffError
from .runner import Interrupted as Interrupted
from .runner import resume as resume
from .runner import run as run
from .state import RunState as RunState
