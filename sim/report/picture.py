"""A picture as Matplotlib writes it, made part of the page: its colours, its names, and no more.

Rules of this file:

1. Stand-ins for colours become variables of the style sheet, so that a picture serves both schemes.
2. Names inside a picture begin with the name of the picture: many lie in one page.
3. What nobody sees or refers to is left out, which is two thirds of what Matplotlib writes.
"""

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from sim.report.markup import Markup

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FAMILY = re.compile(r"font-family: [^;]+; ?")
_NUMBER = re.compile(r"-?\d+\.\d+")
_COMMAND = re.compile(r"\s*([a-zA-Z])\s*")
_UNTURNED = re.compile(r"rotate\(-?0 [^)]*\)")
_UNSEEN = "fill:none"
_PLACES = ("d", "x", "y", "width", "height", "transform", "viewBox")
_Part = ElementTree.Element


def picture(written: str, name: str, description: str, variables: Mapping[str, str]) -> Markup:
    """The root element of an SVG file; ``variables`` are those of its colours."""
    root = ElementTree.fromstring(written)
    for part in root.iter():
        part.tag = part.tag.removeprefix(f"{{{SVG}}}")
        part.attrib = {key.removeprefix(f"{{{XLINK}}}"): part.attrib[key] for key in part.attrib}
    known = _names(root, written, name)
    for part in root.iter():
        part.attrib = {
            key: _at_home(key, value, known, variables)
            for key, value in part.attrib.items()
            if (key != "id" or value in known) and not _UNTURNED.fullmatch(value)
        }
    _dress(root)
    (slim,) = _slimmed(root)
    slim.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-label": description,
        "class": "plot",
    }
    return Markup(ElementTree.tostring(slim, encoding="unicode"))


def _names(root: _Part, written: str, name: str) -> dict[str, str]:
    """New names of all parts that others refer to."""
    known = [part.attrib["href"].removeprefix("#") for part in root.iter("use")]
    known += _REFERENCE.findall(written)
    return {old: f"{name}-{number}" for number, old in enumerate(dict.fromkeys(known))}


def _at_home(key: str, value: str, known: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """An attribute as it is in the page."""
    if key == "id":
        return known[value]
    if key == "href":
        return f"#{known[value.removeprefix('#')]}"
    if key == "style":
        value = _COLOUR.sub(lambda found: f"var({variables[found[0]]})", _FAMILY.sub("", value))
        return value.replace("; ", ";").replace(": ", ":")
    if key in _PLACES:
        value = _NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), value)
        return _COMMAND.sub(r"\1", value).strip() if key == "d" else value
    return _REFERENCE.sub(lambda found: f"url(#{known[found[1]]})", value)


def _dress(root: _Part) -> None:
    """Where all uses of a mark look the same, the mark says so, and not each of them."""
    marks = {f"#{part.attrib['id']}": part for part in root.iter("path") if "id" in part.attrib}
    uses: dict[str, list[_Part]] = {}
    for use in root.iter("use"):
        uses.setdefault(use.attrib["href"], []).append(use)
    for href, alike in uses.items():
        looks = {use.attrib.get("style", "") for use in alike}
        if len(looks) == 1:
            own = marks[href].attrib.get("style", "")
            marks[href].attrib["style"] = ";".join(filter(None, [*looks, own]))  # the last holds
            for use in alike:
                use.attrib.pop("style", None)


def _slimmed(part: _Part) -> list[_Part]:
    """What there is to see of a part: itself, what is in it, or nothing."""
    # A style sheet in a picture would hold for the page.
    if part.tag in ("style", "metadata") or part.attrib.get("style") == _UNSEEN:
        return []
    part[:] = _merged([each for child in part for each in _slimmed(child)])
    part.tail = None
    if part.tag != "text":
        part.text = None
    if part.tag in ("g", "defs") and len(part) == 0:
        return []
    if part.tag == "path" and not part.attrib.get("d"):  # outside of what is shown
        return []
    return list(part) if part.tag == "g" and not part.attrib else [part]


def _merged(parts: list[_Part]) -> list[_Part]:
    """Neighbouring paths that are drawn in the same way, such as intervals of a line, are one."""
    merged: list[_Part] = []
    for part in parts:
        last = merged[-1] if merged else None
        if last is not None and part.tag == "path" and _look(last) == _look(part) is not None:
            last.attrib["d"] += part.attrib["d"]
        else:
            merged.append(part)
    return merged


def _look(part: _Part) -> dict[str, str] | None:
    """All attributes of a path but its way, if others do not refer to it."""
    if part.tag != "path" or "id" in part.attrib:
        return None
    return {key: value for key, value in part.attrib.items() if key != "d"}
