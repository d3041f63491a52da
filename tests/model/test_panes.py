"""Values kept once a pane are those kept window by window."""

from hypothesis import event, given
from hypothesis import strategies as st

from model.vocabulary import WindowSpec
from model.windows.by_window import OpenWindows, Panes

Windows = list[tuple[int, str, list[float]]]


def sorted_values(windows: Windows) -> Windows:
    return [(index, key, sorted(values)) for index, key, values in windows]


@given(
    size_us=st.integers(1, 12),
    slide_us=st.integers(1, 12),
    moves=st.lists(
        st.tuples(st.integers(-30, 30), st.sampled_from("ab"), st.integers(0, 3)), max_size=25
    ),
)
def test_panes_hold_what_windows_hold(
    size_us: int, slide_us: int, moves: list[tuple[int, str, int]]
) -> None:
    """Tuples join those of their windows that are still there; then some of these are taken."""
    windows = WindowSpec(size_us, slide_us)
    first = windows.first_index(-30)
    panes, plain = Panes(windows, first), OpenWindows()
    for number, (time_us, key, further) in enumerate(moves):
        indices = windows.indices(time_us)
        still = [index for index in indices if index >= first]
        panes.join(still, key, time_us, float(number))
        plain.join(still, key, time_us, float(number))
        if 0 < len(still) < len(indices):
            event("joined some of its windows")
        first += further
        taken = panes.take(first)
        assert sorted_values(taken) == sorted_values(plain.take(first))
        if any(len(values) > 1 for _, _, values in taken):
            event("several values taken together")
    assert sorted_values(panes.windows()) == sorted_values(plain.take(first + 100))


def test_values_that_are_taken_are_nobodys() -> None:
    """What is done to the values of a window does not reach its neighbours."""
    windows = WindowSpec(4, 2)
    panes = Panes(windows, windows.first_index(0))
    panes.join(windows.indices(2), "", 2, 1.0)
    ((index, _, values),) = panes.take(windows.first_index(2) + 1)
    values.append(5.0)
    assert panes.windows() == [(index + 1, "", [1.0])]
