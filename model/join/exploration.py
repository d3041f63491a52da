"""Every behaviour of a scope, with the right protocol or a planted bug in it.

Rules of this file:

* A planted bug is explored where it is at home, and until the promise that it breaks is broken.
"""

from model.checking.explorer import Exploration
from model.checking.explorer import explore as search
from model.join.protocol import Scope, State
from model.join.scope_claims import claims_of
from model.join.scopes import SCOPES, machine_of
from model.join.state import Action
from model.join.variants import VARIANTS

MAX_STATES = 5_000_000


def scope_of(name: str, variant: str | None = None) -> Scope:
    """A scope, or what a variant makes of it.

    Raises KeyError for a name that does not exist.
    """
    return SCOPES[name] if variant is None else VARIANTS[variant].spoil(SCOPES[name])


def explore(
    scope: str, variant: str | None = None, max_states: int = MAX_STATES
) -> Exploration[State, Action]:
    """Search a scope; with a variant, until the promise that it breaks is broken.

    Raises KeyError for a name that does not exist.
    """
    chosen = scope_of(scope, variant)
    return search(
        machine_of(chosen),
        claims_of(chosen),
        max_states=max_states,
        promise=None if variant is None else VARIANTS[variant].promise,
    )
