"""Writes videos.json beside this file: the definitions of the nodes of video and sound, as make_pictures.py does
those of pictures.

    make_videos.py object_info.json [newer.json...]        (a later file's entry holds)
"""

import json
import sys
from pathlib import Path

from make_pictures import definition

NODES = [
    *"AudioAdjustVolume AudioConcat AudioEqualizer3Band AudioMerge CreateVideo EmptyAudio EmptyLatentAudio".split(),
    *"GetVideoComponents JoinAudioChannels LoadAudio LoadVideo PreviewAudio RecordAudio SaveAudio".split(),
    *"SaveAudioAdvanced SaveAudioMP3 SaveAudioOpus SaveVideo SaveWEBM SplitAudioChannels TrimAudioDuration".split(),
    *"VideoCrop VideoFrameSample VideoRandomTemporalCrop VideoTemporalCrop VideoTrim".split(),
    "Video Slice",
]


if __name__ == "__main__":
    classes = {}
    for path in sys.argv[1:]:
        classes.update(json.loads(Path(path).read_text()))
    lines = [f'"{name}": {json.dumps(definition(classes[name]))}' for name in NODES]
    (Path(__file__).parent / "videos.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
