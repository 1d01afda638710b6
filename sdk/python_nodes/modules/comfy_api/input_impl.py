"""Kinds of videos."""

from heddle_nodes.video import VideoFromComponents, VideoFromFile, VideoFromList  # noqa: F401
