"""What room ``slack`` adds to the windows that rooms share."""

from model.vocabulary import SlackConfig
from model.vocabulary.slack import Correlation, Judged, Progress
from spark_impl.slack.records import JUDGED, Memory
from spark_impl.slack.rule import SlackRule
from spark_impl.windows.asked import Asked
from spark_impl.windows.room import Room
from spark_impl.windows.tables import FLAG, FLOAT, INT, WINDOW


def asked(config: SlackConfig) -> Asked:
    """What a query asks of its windows."""
    return Asked(
        size_us=config.size_us,
        slide_us=config.slide_us,
        aggregate=config.aggregate,
        q=config.q,
        keyed=config.keyed,
        tasks=config.tasks,
        dedup=config.dedup,
        feedback_us=config.feedback,
        max_future_us=config.max_future_us,
        positive=config.needs_positive_values,
        corrects=True,
        correlates=True,
        gamma_us=config.gamma_us,
        max_age_us=config.max_age,
    )


SLACK = Room(
    name="slack",
    read=SlackConfig.from_json,
    asked=asked,
    rule=SlackRule,
    memory=Memory(),
    progress={"max_delay_us": INT, "alpha": FLOAT},
    records={"judged": JUDGED},
    columns={
        "judged": {
            "order": INT,
            **WINDOW,
            "n_rcv": INT,
            "n_late": INT,
            "n_req": INT,
            "miss": FLAG,
            "alpha": FLOAT,
        }
    },
    words={
        "judged": Judged,
        "progress": Progress,
        "correlation": Correlation,
    },
)
