from .disturbances import Disturbances as Disturbances
from .fields.base import Field as Field
from .fields.base import FieldKind as FieldKind
from .world import Quantity as Quantity
from .world import World as World
