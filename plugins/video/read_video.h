// Files of video as pictures and sound.
#pragma once

#include <functional>

#include "plugins/video/media_file.h"
#include "plugins/video/values.h"

namespace heddle::video {

// A part of a file's time, in seconds. A duration of 0 is no limit.
struct Window {
  double start = 0, duration = 0;
};

// What is known of a video before its pictures are decoded.
struct VideoFacts {
  std::int64_t width = 0, height = 0;  // upright, cropped
  Rate rate;                           // on average; 1 where the file does not say
  double duration = 0;                 // of the whole file, in seconds; 0: it does not say
  std::int64_t bit_depth = 8;
  std::string color_space;
};
VideoFacts facts_of(const MediaFile& file, const std::optional<Crop>& crop);

// Opens what a value names. Throws as MediaFile.
std::unique_ptr<MediaFile> open_video(const FileVideo& video);

// The window that a value means: a start below 0 counts from the file's end.
Window window_of(const FileVideo& video, const MediaFile& file);

// What is done with what comes out of decoders.
struct VideoSink {
  Decoder::Take picture, sound;  // false: it needs no more
  std::function<void()> between = [] {};
};
// Hands over the pictures that begin within a window, and what sound goes with the video from the
// key picture before it on. Returns how many packets were damaged. REQUIRES: a file just opened.
std::size_t decode_video(MediaFile& file, const Window& window, const VideoSink& sink);

// Pictures whose time is in the window, counted by packets; some formats have more pictures.
std::int64_t count_pictures(MediaFile& file, const Window& window);

// Throws for a picture that cannot be read, or that is not as large as the ones before.
void require_readable(const MediaFile& file, PixelReader& pixels, const AVFrame& frame);

// Everything of a video in host memory. Warns of what is damaged.
Pictures read_pictures(Context& ctx, const FileVideo& video);

}  // namespace heddle::video
