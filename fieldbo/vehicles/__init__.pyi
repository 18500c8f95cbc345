from .base import Vehicle as Vehicle
from .by_hand import ByHand as ByHand
from .kinds import LINKS as LINKS
from .kinds import VEHICLES as VEHICLES
from .load import load_vehicle as load_vehicle
from .remote.link import Link as Link
from .remote.remote import Remote as Remote
from .simulated import Simulated as Simulated
