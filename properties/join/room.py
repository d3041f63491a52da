"""Room ``join`` as the command line and the tests know it: what there is of it, its model."""

from model.explorer import Path
from model.join.chart import chart
from model.join.claims import judge
from model.join.exploration import explore, scope_of
from model.join.protocol import State
from model.join.scopes import EVERYDAY, SCOPES
from model.join.state import Action
from model.join.variants import VARIANTS
from properties.join.errata import ERRATA
from properties.rooms import Explorer, Model


def _drawn(scope: str, variant: str, path: Path[State, Action]) -> tuple[str, ...]:
    return chart(scope_of(scope, variant), path)


EXPLORER = Explorer(
    scopes=tuple(SCOPES),
    everyday=EVERYDAY,
    variants=VARIANTS,
    explore=explore,
    homes={name: variant.home for name, variant in VARIANTS.items()},
    chart=_drawn,
)

ROOM = Model(name="join", check=judge, explorer=EXPLORER, errata=ERRATA)
