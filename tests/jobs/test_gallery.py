"""The gallery of jobs: each right one holds, each wrong one is broken by a few rows."""

import inspect

import pytest
from pyspark.sql import SparkSession

from straggler.jobs.plans import remarks
from straggler.jobs.running import Runner
from tests.house.repository import ROOT
from tests.jobs.gallery import BROKEN, GALLERY, HOLDS, Entry
from tests.jobs.guide import GUIDE
