from .record import Record as Record
from .record import Row as Row
