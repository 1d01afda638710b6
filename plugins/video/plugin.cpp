// The plugin of moving pictures and sound, by FFmpeg's libraries.
#include <cstdlib>

#include "plugins/video/compression_nodes.h"
#include "plugins/video/dataset_nodes.h"
#include "plugins/video/edit_nodes.h"
#include "plugins/video/join_nodes.h"
#include "plugins/video/save_nodes.h"
#include "plugins/video/save_sound_nodes.h"
#include "plugins/video/sound_nodes.h"
#include "plugins/video/track_preview.h"
#include "plugins/video/video_nodes.h"

namespace heddle::video {

// SVT-AV1 tells stderr of each of its runs, unless somebody asks for something else. Set while the
// plugin is loaded, when no other thread reads the environment.
const int svt_is_quiet = ::setenv("SVT_LOG", "1", 0);

HEDDLE_PLUGIN("org.heddle.video", "0.1.0", LoadVideo, CreateVideo, GetVideoComponents, VideoSlice,
              SaveVideo, SaveWEBM, VideoTrim, VideoCrop, VideoTemporalCrop, VideoRandomTemporalCrop,
              VideoFrameSample, ConcatenateVideo, LoadAudio, RecordAudio, EmptyAudio,
              TrimAudioDuration, SplitAudioChannels, JoinAudioChannels, AudioConcat, AudioMerge,
              AudioAdjustVolume, AudioEqualizer3Band, EmptyLatentAudio, SaveAudio, SaveAudioMP3,
              SaveAudioOpus, SaveAudioAdvanced, PreviewAudio, LTXVPreprocess,
              LoadVideoDataSetFromFolder, LoadVideoTextDataSetFromFolder, ShuffleVideoDataset,
              ShuffleVideoTextDataset, Sam3TrackPreview)

}  // namespace heddle::video
