"""Files of every version of Straggler, which later ones go on with or refuse.

A folder holds archives of one version. ``python -m tests.golden`` writes ``unreleased`` anew, from
drawn input; a change of a format needs that. At a release the folder gets the name of the version,
and then stays as it is: it is what users have.
"""
