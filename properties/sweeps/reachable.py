"""Whether somebody answers where a Spark master should be.

Spark itself tries for more than a minute, and then says that it waited.
"""

from socket import create_connection

from properties.errors import UsageError

SCHEME = "spark://"
PATIENCE_S = 5.0


def refuse_silent(master: str) -> None:
    """Refuse a standalone master of which no host answers; others are Spark's to find.

    Raises :class:`UsageError` with one sentence that names the option.
    """
    if not master.startswith(SCHEME):
        return
    places = master.removeprefix(SCHEME).split(",")
    refusals = [_refusal(master, place) for place in places]
    if all(refusals):
        tried = " and ".join(
            f"{place} ({why})" for place, why in zip(places, refusals, strict=True)
        )
        raise UsageError(f"--on {master!r}: there is no Spark master at {tried}")


def _refusal(master: str, place: str) -> str:
    """Why nobody answers; empty if somebody does."""
    host, _, port = place.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 1 << 16:
        msg = f"--on {master!r}: {place!r} is not HOST:PORT, as in spark://name:7077"
        raise UsageError(msg)
    try:
        create_connection((host.strip("[]"), int(port)), PATIENCE_S).close()
    except (OSError, UnicodeError) as error:
        return (getattr(error, "strerror", None) or str(error)).lower()
    return ""
