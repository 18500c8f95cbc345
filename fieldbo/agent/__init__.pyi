from .agent import Agent as Agent
from .ledger import Entry as Entry
from .ledger import Ledger as Ledger
from .state import Issued as Issued
from .vehicle_state import VehicleState as VehicleState
