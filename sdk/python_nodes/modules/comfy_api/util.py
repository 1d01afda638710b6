"""What videos are made of."""

from heddle_nodes.video import VideoCodec, VideoComponents, VideoContainer  # noqa: F401
