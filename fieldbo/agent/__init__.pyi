from .agent import Agent as Agent
from .ledger import Entry as Entry
from .ledger import Ledger as Ledger
