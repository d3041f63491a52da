"""Golden counts of the explored scopes of room ``join``: states and transitions of each."""

EVERYDAY = {
    "adding": (569, 1_377),
    "removing": (4_196, 12_701),
    "silent": (645, 1_477),
    "cut": (2_308, 5_313),
    "fifo": (4_256, 11_738),
    "drop": (4_508, 11_879),
    "numbered": (5_545, 14_078),
    "balanced": (7_817, 26_646),
    "repeating": (10_578, 35_337),
    "drop-unordered": (10_117, 29_814),
    "balanced-unordered": (12_225, 44_286),
    "flush": (10_615, 27_806),
    "balanced-three": (10_233, 40_040),
    "elastic": (9_437, 31_376),
    "elastic-drop": (5_849, 15_999),
    "elastic-twice": (9_395, 33_640),
    "adding-large": (11_460, 38_774),
    "three": (9_038, 30_266),
    "unordered": (29_250, 96_677),
}
"""Scopes that are explored every day."""

GOLDEN = {
    **EVERYDAY,
    "three-numbered": (21_927, 67_188),
    "flush-unordered": (30_242, 90_233),
    "cut-large": (31_670, 83_480),
    "numbered-large": (33_525, 95_394),
    "four": (35_511, 138_874),
    "fifo-large": (40_743, 123_284),
    "elastic-large": (137_200, 588_857),
    "balanced-large": (308_452, 1_491_138),
}
"""All scopes."""
