"""``straggler plan``: the smallest cluster that keeps up with a demand, by simulation."""

from rich.table import Table

from model.vocabulary.durations import UNITS_US
from sim.calibration import Calibration
from sim.join.demand import Demand, Hardware, hardware_of
from sim.join.planning import Found, NoChain, Trial, find_chain
from sim.kernel.plan import TIER_TABLE
from straggler.cli import render
from straggler.cli.calibrate import read_calibration
from straggler.cli.commands import Command, Group, examples_of
from straggler.cli.outputs import refuse_unwritable, write_json
from straggler.errors import UsageError
from straggler.options import PATH, Arguments, Bandwidth, Duration, Option, in_options

EXAMPLES = """\
examples:
  straggler plan join --rate 20000 --window 5min --links 100Mb/s --latency 2s
  straggler plan join --rate 20000 --window 10s --links 1Gb/s --latency 10s \\
      --selectivity 0.03 --calibration cluster.json --json plan.json

straggler calibrate writes calibrations; docs/cluster.md says what a plan means.
"""
NEEDED = ("--rate", "--window", "--latency")
NO_CHAIN = 1
"""Exit code if no cluster does what was asked."""


def make_command(summary: str) -> Group:
    """Return the group; ``join`` is its only command."""
    return Group(summary, EXAMPLES, "room", {"join": "a chain of workers"}, _load)


def _load(name: str) -> Command:
    if name != "join":
        raise UsageError(f"there is no plan of {name!r}, only of join")
    settings = {"section": "demand"}
    share = "share of the pairs within the window that the index selects (0.0001)"
    options = [
        Option(
            "--rate",
            "tuples a second of both streams together",
            type=float,
            metavar="X",
            **settings,
        ),
        Option("--window", "length of the window", "window_us", type=Duration(), **settings),
        Option(
            "--latency",
            "largest latency (p99) of a pair, after its later tuple",
            "latency_us",
            type=Duration(),
            **settings,
        ),
        Option("--selectivity", share, type=float, metavar="X", section="demand"),
        Option("--links", "bandwidth between neighbours (100Mb/s)", type=Bandwidth()),
        Option("--calibration", "costs of a cluster, measured", type=PATH, metavar="FILE"),
        Option("--seed", "seed of the simulated streams (0)", type=int, default=0, metavar="N"),
        Option("--json", "also write the plan to FILE", type=PATH, metavar="FILE"),
    ]
    return Command("a chain of workers", examples_of(name, EXAMPLES), options, run)


def run(args: Arguments) -> int:
    """Search, print the plan, and return 0; 1 if no chain does what was asked."""
    refuse_unwritable("--json", args.json)
    for option, value in zip(NEEDED, (args.rate, args.window_us, args.latency_us), strict=True):
        if value is None:
            raise UsageError(f"{option} is missing; a plan needs {', '.join(NEEDED)}")
    if args.seed < 0:
        raise UsageError(f"--seed is {args.seed}; it must be an integer >= 0")
    given = None if args.calibration is None else read_calibration(args.calibration)
    hardware = _hardware(given, args.links)
    share = {} if args.selectivity is None else {"selectivity": args.selectivity}
    names = ("window_us", "latency_us", "selectivity")
    with render.progress() as progress:
        progress.add_task("simulating chains", total=None)
        try:
            demand = Demand(args.rate, args.window_us, args.latency_us, **share)
            found = find_chain(demand, hardware, args.seed)
        except NoChain as error:
            render.print_prose(render.console(args.json), [f"{error}."])
            write_json(args.json, {"seed": args.seed, "chain": None, "reason": str(error)})
            return NO_CHAIN
        except ValueError as error:
            raise UsageError(in_options(str(error), names, {"rate_hz": "--rate"})) from error
    out = render.console(args.json)
    out.print(_table(found.chain, hardware))
    costs = "those of docs/join.md, section 13" if given is None else f"measured on {given.master}"
    render.print_prose(out, [_describe_smaller(found), f"Costs are {costs}. Seed {args.seed}."])
    write_json(args.json, _record(args.seed, found))
    return 0


def _hardware(given: Calibration | None, links_mbps: float | None) -> Hardware:
    if given is not None:
        return hardware_of(given, links_mbps)
    tier = TIER_TABLE.rack
    return Hardware(tier if links_mbps is None else tier._replace(bandwidth_mbps=links_mbps))


def _table(chain: Trial, hardware: Hardware) -> Table:
    grid = Table(box=None, pad_edge=False, show_header=False)
    grid.add_column()
    grid.add_column(justify="right")
    assert chain.p50_us is not None
    assert chain.p99_us is not None
    rows = {
        "workers": f"{chain.workers}",
        "block size": f"{chain.block_size}" if chain.workers > 1 else "any",
        "busiest worker": f"{chain.busiest:.0%}",
        "links": f"{chain.links:.0%}",
        "latency, p50": _seconds(chain.p50_us),
        "latency, p99": _seconds(chain.p99_us),
    }
    if hardware.epoch_us:
        rows["length of an epoch"] = _seconds(hardware.epoch_length_us)
    for row in rows.items():
        grid.add_row(*row)
    return grid


def _seconds(time_us: float) -> str:
    return f"{time_us / UNITS_US['s']:,.3g} s"


def _describe_smaller(found: Found) -> str:
    """Return a sentence about the next smaller chain."""
    smaller = found.smaller
    if smaller is None:
        return "There is no smaller chain."
    noun = "worker" if smaller.workers == 1 else "workers"
    return f"A chain of {smaller.workers} {noun} fails: it {smaller.lacks}."


def _record(seed: int, found: Found) -> dict[str, object]:
    chains = {"chain": found.chain, "smaller": found.smaller}
    return {
        "seed": seed,
        **{name: None if each is None else each._asdict() for name, each in chains.items()},
    }
