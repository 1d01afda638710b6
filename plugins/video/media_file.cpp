#include "plugins/video/media_file.h"

#include <vector>

namespace heddle::video {
namespace {

// Containers of one file that people have; playlists and the like would lead to other files.
constexpr const char* kFormats =
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,flv,mpegts,mpeg,asf,ogg,ivf,gif,apng,webp_pipe,"
    "wav,w64,flac,mp3,aac,aiff,au,caf,amr,ac3,eac3,h264,hevc,obu,mjpeg,nut";

// Of decoders: results do not depend on it, and one is never out of step with another.
constexpr int kThreads = 1;

int refuse_to_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return AVERROR(EPERM);
}

bool is_cover(const AVStream& stream) {
  return (stream.disposition & AV_DISPOSITION_ATTACHED_PIC) != 0;
}

// A decoder, and find_stream_info() that opens one, refuses pictures before it makes them.
std::string pixel_option(const MediaLimits& limits) {
  return std::to_string(std::min<std::uint64_t>(limits.most_pixels, INT_MAX));
}

}  // namespace

void refuse_media(const std::string& name, const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT, name + ": " + what);
}

MediaFile::MediaFile(std::unique_ptr<ByteSource> source, std::string name, MediaLimits limits)
    : source_(std::move(source)), name_(std::move(name)), limits_(limits), io_(*source_) {
  keep_complaints();
  if (source_->size() == 0) refuse_media(name_, "the file is empty.");
  format_ = avformat_alloc_context();
  if (format_ == nullptr) throw std::bad_alloc();
  format_->pb = io_.raw();
  format_->flags |= AVFMT_FLAG_CUSTOM_IO;
  format_->io_open = &refuse_to_open;
  Options options;
  options.set("format_whitelist", kFormats);
  // On failure it frees the context.
  if (const int code = avformat_open_input(&format_, nullptr, nullptr, options.raw()); code < 0)
    refuse_format(code);
  std::vector<AVDictionary*> of_streams(format_->nb_streams, nullptr);
  for (AVDictionary*& of_stream : of_streams) {
    av_dict_set(&of_stream, "threads", "1", 0);
    av_dict_set(&of_stream, "max_pixels", pixel_option(limits_).c_str(), 0);
  }
  const int code = avformat_find_stream_info(format_, of_streams.data());
  for (AVDictionary*& of_stream : of_streams) av_dict_free(&of_stream);
  if (code < 0) {
    avformat_close_input(&format_);
    refuse_format(code);
  }
}

MediaFile::~MediaFile() { avformat_close_input(&format_); }

void MediaFile::refuse_format(int code) const {
  refuse_media(name_, "this file of video or sound cannot be read: " + error_text(code) +
                          ". It is damaged, ends early, or has a format that is not known.");
}

AVStream* MediaFile::pictures() const {
  AVStream* cover = nullptr;
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    AVStream* const stream = format_->streams[i];
    if (stream->codecpar->codec_type != AVMEDIA_TYPE_VIDEO) continue;
    if (!is_cover(*stream)) return stream;
    cover = stream;
  }
  return cover;
}

AVStream* MediaFile::first_sound() const {
  for (unsigned i = 0; i < format_->nb_streams; ++i)
    if (format_->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_AUDIO) return format_->streams[i];
  return nullptr;
}

AVStream* MediaFile::last_sound() const {
  AVStream* last = nullptr;
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    const AVCodecParameters& parameters = *format_->streams[i]->codecpar;
    if (parameters.codec_type == AVMEDIA_TYPE_AUDIO &&
        avcodec_find_decoder(parameters.codec_id) != nullptr)
      last = format_->streams[i];
  }
  return last;
}

AVStream& MediaFile::require_pictures() const {
  if (AVStream* const stream = pictures()) return *stream;
  refuse_media(name_, "there is no video in this file. Give one that has pictures.");
}

AVStream& MediaFile::require_sound() const {
  if (AVStream* const stream = first_sound()) return *stream;
  refuse_media(name_, "there is no sound in this file. Give one that has a track of sound.");
}

bool MediaFile::next(AVPacket& packet) {
  av_packet_unref(&packet);
  const int code = av_read_frame(format_, &packet);
  if (code >= 0) return true;
  if (code == AVERROR_EOF || code == AVERROR_INVALIDDATA) return false;
  throw Error(HEDDLE_IO, name_ + ": cannot be read: " + error_text(code) + ".");
}

void MediaFile::seek(const AVStream& stream, std::int64_t pts) {
  const int code = av_seek_frame(format_, stream.index, pts, AVSEEK_FLAG_BACKWARD);
  if (code < 0)
    refuse_media(name_, "cannot go to its time " +
                            std::to_string(static_cast<double>(pts) * av_q2d(stream.time_base)) +
                            " s: " + error_text(code) + ".");
}

Decoder::Decoder(const MediaFile& file, AVStream& stream)
    : file_(file), frame_(held(av_frame_alloc())) {
  const AVCodec* const decoder = avcodec_find_decoder(stream.codecpar->codec_id);
  if (decoder == nullptr)
    throw Error(HEDDLE_UNSUPPORTED, file.name() + ": this FFmpeg has no decoder for " +
                                        avcodec_get_name(stream.codecpar->codec_id) +
                                        ". Convert the file to H.264, VP9 or AV1.");
  codec_ = held(avcodec_alloc_context3(decoder));
  if (avcodec_parameters_to_context(codec_.get(), stream.codecpar) < 0) throw std::bad_alloc();
  codec_->pkt_timebase = stream.time_base;
  codec_->thread_count = kThreads;
  codec_->flags |= AV_CODEC_FLAG_BITEXACT;
  Options options;
  options.set("max_pixels", pixel_option(file.limits()));
  if (const int code = avcodec_open2(codec_.get(), decoder, options.raw()); code < 0)
    refuse_media(file.name(), std::string("its ") + decoder->name +
                                  " stream cannot be decoded: " + error_text(code) + ".");
}

bool Decoder::decode(const AVPacket* packet, const Take& take) {
  int code = avcodec_send_packet(codec_.get(), packet);
  if (code == AVERROR(ENOMEM)) throw std::bad_alloc();
  if (code < 0 && code != AVERROR_EOF && code != AVERROR(EAGAIN)) {
    ++damaged_;
    return true;
  }
  while (true) {
    code = avcodec_receive_frame(codec_.get(), frame_.get());
    if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return true;
    if (code == AVERROR(ENOMEM)) throw std::bad_alloc();
    if (code < 0) {
      ++damaged_;
      return true;
    }
    const bool goes_on = take(*frame_);
    av_frame_unref(frame_.get());
    if (!goes_on) return false;
  }
}

}  // namespace heddle::video
