// Handles of FFmpeg's libraries that free what they hold, and what its error codes say.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswresample/swresample.h>
#include <libswscale/swscale.h>
}

#include <memory>
#include <new>
#include <string>

#include "plugins/video/ffmpeg_functions.h"

namespace heddle::video {

struct Freeing {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(AVCodecContext* codec) const { avcodec_free_context(&codec); }
  void operator()(SwsContext* scaler) const { sws_freeContext(scaler); }
  void operator()(SwrContext* resampler) const { swr_free(&resampler); }
  void operator()(AVIOContext* io) const {
    av_freep(&io->buffer);
    avio_context_free(&io);
  }
};
template <class T>
using Held = std::unique_ptr<T, Freeing>;

// What FFmpeg made; it gives NULL when memory is out.
template <class T>
Held<T> held(T* made) {
  if (made == nullptr) throw std::bad_alloc();
  return Held<T>(made);
}

// Options by name, as FFmpeg's functions take them; those that nobody took are left in it.
class Options {
 public:
  Options() = default;
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  ~Options() { av_dict_free(&options_); }
  void set(const char* name, const std::string& value) {
    if (av_dict_set(&options_, name, value.c_str(), 0) < 0) throw std::bad_alloc();
  }
  AVDictionary** raw() { return &options_; }

 private:
  AVDictionary* options_ = nullptr;
};

// FFmpeg's words for an error, and what it last complained of on this thread.
std::string error_text(int code);

// FFmpeg would write its complaints to stderr; from then on they are kept for error_text(). Any
// thread; the first call counts.
void keep_complaints();

}  // namespace heddle::video
