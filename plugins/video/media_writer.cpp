#include "plugins/video/media_writer.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <heddle/plugin.hpp>

namespace heddle::video {
namespace {

// Encoders divide a picture among threads, and what they write depends on how many there are. (With
// several, libx264 rarely chooses other B frames of the same pictures, also without a thread that
// looks ahead.)
constexpr int kEncoderThreads = 4;
constexpr int kIoBuffer = 1 << 16;

const AVCodec& encoder_named(const std::string& name) {
  const AVCodec* const encoder = avcodec_find_encoder_by_name(name.c_str());
  if (encoder == nullptr)
    throw Error(HEDDLE_UNSUPPORTED,
                "this FFmpeg has no encoder " + name +
                    ". Install Debian's libavcodec59, or choose another codec.");
  return *encoder;
}

[[noreturn]] void refuse_writing(const std::string& what, int code) {
  if (code == AVERROR(ENOMEM)) throw std::bad_alloc();
  throw Error(HEDDLE_INVALID_ARGUMENT, what + ": " + error_text(code) + ".");
}

// The rate of an encoder's list that is nearest above, else the highest; any where it has no list.
int fitting_rate(const AVCodec& encoder, int rate) {
  if (encoder.supported_samplerates == nullptr) return rate;
  int above = INT_MAX, highest = 0;
  for (const int* offered = encoder.supported_samplerates; *offered != 0; ++offered) {
    highest = std::max(highest, *offered);
    if (*offered >= rate) above = std::min(above, *offered);
  }
  return above == INT_MAX ? highest : above;
}

AVIOContext* make_io(void* self, bool writes, int (*read)(void*, std::uint8_t*, int),
                     int (*write)(void*, std::uint8_t*, int),
                     std::int64_t (*seek)(void*, std::int64_t, int)) {
  auto* const buffer = static_cast<unsigned char*>(av_malloc(kIoBuffer));
  if (buffer == nullptr) return nullptr;
  AVIOContext* const io =
      avio_alloc_context(buffer, kIoBuffer, writes ? 1 : 0, self, read, write, seek);
  if (io == nullptr) av_free(buffer);
  return io;
}

// A second look at the bytes of a writer, from their beginning: the file is shifted by it when its
// index moves to the front.
struct Rereading {
  const std::string* bytes;
  std::size_t position = 0;
};

}  // namespace

StreamWriter::StreamWriter(MediaWriter& writer, const VideoCoding& coding)
    : writer_(writer), packet_(held(av_packet_alloc())) {
  const AVCodec& encoder = encoder_named(coding.encoder);
  codec_ = held(avcodec_alloc_context3(&encoder));
  codec_->width = coding.width;
  codec_->height = coding.height;
  codec_->pix_fmt = coding.format;
  codec_->time_base = coding.time_base;
  codec_->framerate = coding.frame_rate;
  codec_->bit_rate = 0;
  codec_->colorspace = coding.colours.matrix;
  codec_->color_primaries = coding.colours.primaries;
  codec_->color_trc = coding.colours.transfer;
  codec_->color_range = AVCOL_RANGE_MPEG;
  codec_->chroma_sample_location = coding.colours.location;
  if (!coding.reorders) codec_->max_b_frames = 0;
  Options options;
  for (const auto& [name, value] : coding.options) options.set(name.c_str(), value);
  open(encoder, options);
  stream_->avg_frame_rate = coding.frame_rate;
}

StreamWriter::StreamWriter(MediaWriter& writer, const SoundCoding& coding)
    : writer_(writer), packet_(held(av_packet_alloc())) {
  const AVCodec& encoder = encoder_named(coding.encoder);
  codec_ = held(avcodec_alloc_context3(&encoder));
  codec_->sample_rate = fitting_rate(encoder, coding.sample_rate);
  codec_->sample_fmt = encoder.sample_fmts[0];
  codec_->bit_rate = coding.bit_rate;
  codec_->time_base = {1, codec_->sample_rate};
  av_channel_layout_default(&codec_->ch_layout, coding.channels);
  if (coding.quality >= 0) {
    codec_->flags |= AV_CODEC_FLAG_QSCALE;
    codec_->global_quality = coding.quality * FF_QP2LAMBDA;
  }
  Options options;
  open(encoder, options);
}

void StreamWriter::open(const AVCodec& encoder, Options& options) {
  codec_->thread_count = kEncoderThreads;
  codec_->flags |= AV_CODEC_FLAG_BITEXACT;
  if ((writer_.raw()->oformat->flags & AVFMT_GLOBALHEADER) != 0)
    codec_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  int code = avcodec_open2(codec_.get(), &encoder, options.raw());
  if (code < 0) refuse_writing(std::string(encoder.name) + " cannot encode this", code);
  stream_ = avformat_new_stream(writer_.raw(), nullptr);
  if (stream_ == nullptr) throw std::bad_alloc();
  stream_->time_base = codec_->time_base;
  code = avcodec_parameters_from_context(stream_->codecpar, codec_.get());
  if (code < 0) throw std::bad_alloc();
}

void StreamWriter::write(AVFrame* frame) {
  int code = avcodec_send_frame(codec_.get(), frame);
  if (code < 0) refuse_writing(std::string(codec_->codec->name) + " cannot encode this", code);
  while (true) {
    code = avcodec_receive_packet(codec_.get(), packet_.get());
    if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return;
    if (code < 0) refuse_writing(std::string(codec_->codec->name) + " failed", code);
    av_packet_rescale_ts(packet_.get(), codec_->time_base, stream_->time_base);
    packet_->stream_index = stream_->index;
    code = av_interleaved_write_frame(writer_.raw(), packet_.get());
    if (code < 0) refuse_writing("the file cannot be written", code);
  }
}

MediaWriter::MediaWriter(const std::string& format, const Tags& tags) {
  keep_complaints();
  io_ = held(make_io(this, true, nullptr, &MediaWriter::write_bytes, &MediaWriter::seek));
  if (avformat_alloc_output_context2(&format_, nullptr, format.c_str(), nullptr) < 0)
    throw Error(HEDDLE_UNSUPPORTED, "this FFmpeg writes no files of the format " + format + ".");
  format_->pb = io_.get();
  format_->opaque = this;
  format_->flags |= AVFMT_FLAG_CUSTOM_IO | AVFMT_FLAG_BITEXACT;
  format_->io_open = &MediaWriter::open_again;
  format_->io_close2 = &MediaWriter::close_again;
  for (const auto& [key, text] : tags)
    if (av_dict_set(&format_->metadata, key.c_str(), text.c_str(), 0) < 0) throw std::bad_alloc();
}

MediaWriter::~MediaWriter() { avformat_free_context(format_); }

void MediaWriter::begin() {
  Options options;
  // The workflow's keys are none that the format knows; the index stands in front of the pictures,
  // so that players need not read the end first.
  if (std::string_view(format_->oformat->name) == "mp4")
    options.set("movflags", "use_metadata_tags+faststart");
  if (const int code = avformat_write_header(format_, options.raw()); code < 0)
    refuse_writing(std::string("a file of the format ") + format_->oformat->name +
                       " cannot hold these streams",
                   code);
}

std::string MediaWriter::finish() {
  if (const int code = av_write_trailer(format_); code < 0)
    refuse_writing("the file cannot be ended", code);
  avio_flush(io_.get());
  return std::move(bytes_);
}

int MediaWriter::write_bytes(void* self, std::uint8_t* from, int size) {
  auto& writer = *static_cast<MediaWriter*>(self);
  const auto count = static_cast<std::size_t>(size);
  try {
    if (writer.position_ + count > writer.bytes_.size())
      writer.bytes_.resize(writer.position_ + count);
  } catch (const std::bad_alloc&) {
    return AVERROR(ENOMEM);
  }
  std::memcpy(writer.bytes_.data() + writer.position_, from, count);
  writer.position_ += count;
  return size;
}

std::int64_t MediaWriter::seek(void* self, std::int64_t offset, int whence) {
  auto& writer = *static_cast<MediaWriter*>(self);
  const auto size = static_cast<std::int64_t>(writer.bytes_.size());
  if ((whence & AVSEEK_SIZE) != 0) return size;
  const int from = whence & ~AVSEEK_FORCE;
  const std::int64_t position =
      offset + (from == SEEK_CUR   ? static_cast<std::int64_t>(writer.position_)
                : from == SEEK_END ? size
                                   : 0);
  if (position < 0) return AVERROR(EINVAL);
  writer.position_ = static_cast<std::size_t>(position);
  return position;
}

int MediaWriter::read_bytes(void* self, std::uint8_t* to, int size) {
  auto& reading = *static_cast<Rereading*>(self);
  const std::size_t rest =
      reading.bytes->size() - std::min(reading.position, reading.bytes->size());
  const std::size_t count = std::min(rest, static_cast<std::size_t>(size));
  if (count == 0) return AVERROR_EOF;
  std::memcpy(to, reading.bytes->data() + reading.position, count);
  reading.position += count;
  return static_cast<int>(count);
}

int MediaWriter::open_again(AVFormatContext* format, AVIOContext** io, const char*, int flags,
                            AVDictionary**) {
  if ((flags & AVIO_FLAG_WRITE) != 0) return AVERROR(EPERM);
  auto& writer = *static_cast<MediaWriter*>(format->opaque);
  auto reading = std::make_unique<Rereading>(Rereading{&writer.bytes_});
  const auto seek = [](void* self, std::int64_t offset, int whence) -> std::int64_t {
    auto& again = *static_cast<Rereading*>(self);
    if (whence != SEEK_SET || offset < 0) return AVERROR(EINVAL);
    again.position = static_cast<std::size_t>(offset);
    return offset;
  };
  *io = make_io(reading.get(), false, &MediaWriter::read_bytes, nullptr, seek);
  if (*io == nullptr) return AVERROR(ENOMEM);
  reading.release();
  return 0;
}

int MediaWriter::close_again(AVFormatContext*, AVIOContext* io) {
  delete static_cast<Rereading*>(io->opaque);
  av_freep(&io->buffer);
  avio_context_free(&io);
  return 0;
}

}  // namespace heddle::video
