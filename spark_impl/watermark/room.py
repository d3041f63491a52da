"""What room ``watermark`` adds to the windows that rooms share."""

from model.vocabulary import WatermarkConfig
from model.vocabulary.watermark import Clock
from spark_impl.watermark.rule import CLOCK, Memory, WatermarkRule
from spark_impl.windows.asked import Asked
from spark_impl.windows.room import Room
from spark_impl.windows.tables import INT


def asked(config: WatermarkConfig) -> Asked:
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
        positive=False,
        corrects=config.corrections,
        correlates=False,
        gamma_us=config.gamma_us,
        max_age_us=config.max_age,
    )


WATERMARK = Room(
    name="watermark",
    read=WatermarkConfig.from_json,
    asked=asked,
    rule=WatermarkRule,
    memory=Memory(),
    progress={},
    records={"clock": CLOCK},
    columns={"clock": dict.fromkeys(CLOCK.names or (), INT)},
    words={"clock": Clock},
)
