"""One timed run of room ``slack``: arrivals from a plan, tasks on workers, figures."""

from model.vocabulary import SlackConfig
from sim.slack.timed import figures, room_of, timeline
from sim.windows.run import TimedRoom
from sim.windows.summary import Summary


def described(config: SlackConfig) -> Summary:
    """What a summary says of the query."""
    return {"control": config.control, "aggregate": config.aggregate, "tasks": config.tasks}


SLACK = TimedRoom("slack", room_of, timeline, figures, described)

simulate = SLACK.simulate
make_system = SLACK.make_system
