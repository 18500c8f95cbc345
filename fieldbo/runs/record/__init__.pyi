from .record import Record as Record
from .rows import Row as Row
