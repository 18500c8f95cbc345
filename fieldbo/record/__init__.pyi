from .record import Record as Record
from .store import Row as Row
