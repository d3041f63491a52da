"""One timed run of room ``watermark``: arrivals from a plan, tasks on workers, figures."""

from model.vocabulary import WatermarkConfig
from sim.watermark.timed import figures, room_of, timeline
from sim.windows.run import TimedRoom
from sim.windows.summary import Summary


def described(config: WatermarkConfig) -> Summary:
    """What a summary says of the query."""
    return {
        "reading": config.reading,
        "k": config.k,
        "aggregate": config.aggregate,
        "tasks": config.tasks,
    }


WATERMARK = TimedRoom("watermark", room_of, timeline, figures, described)

simulate = WATERMARK.simulate
make_system = WATERMARK.make_system
