from .disturbances import Conditions as Conditions
from .fields.base import Field as Field
from .fields.base import FieldKind as FieldKind
from .world import Quantity as Quantity
from .world import World as World
