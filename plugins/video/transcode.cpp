#include "plugins/video/transcode.h"

#include <algorithm>
#include <cstring>

#include "plugins/video/encode_pictures.h"
#include "plugins/video/read_sound.h"
#include "plugins/video/read_video.h"
#include "plugins/video/sound_frames.h"

namespace heddle::video {
namespace {

bool has_name(const char* list, std::string_view name) {
  for (std::string_view rest(list); !rest.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    if (rest.substr(0, end) == name) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

bool is_copied(const AVStream& stream) {
  const AVMediaType type = stream.codecpar->codec_type;
  return type == AVMEDIA_TYPE_VIDEO || type == AVMEDIA_TYPE_AUDIO || type == AVMEDIA_TYPE_SUBTITLE;
}

bool fits_webm(const AVStream& stream) {
  switch (stream.codecpar->codec_id) {
    case AV_CODEC_ID_AV1:
    case AV_CODEC_ID_VP8:
    case AV_CODEC_ID_VP9:
    case AV_CODEC_ID_OPUS:
    case AV_CODEC_ID_VORBIS:
    case AV_CODEC_ID_WEBVTT:
      return true;
    default:
      return !is_copied(stream);
  }
}

// The file's own texts under those that are given; what tells of the file it was, stays behind.
Tags with_texts_of(const MediaFile& file, const Tags& tags) {
  Tags all;
  const AVDictionaryEntry* entry = nullptr;
  while ((entry = av_dict_get(file.raw()->metadata, "", entry, AV_DICT_IGNORE_SUFFIX)) != nullptr) {
    std::string key = entry->key;
    std::string lower = key;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    const bool is_technical = has_name(
        "major_brand,minor_version,compatible_brands,encoder,creation_time,duration", lower);
    const bool is_given =
        std::ranges::any_of(tags, [&](const auto& tag) { return tag.first == lower; });
    if (!is_technical && !is_given) all.emplace_back(std::move(key), entry->value);
  }
  all.insert(all.end(), tags.begin(), tags.end());
  return all;
}

std::optional<Sound> sound_of_file(Context& ctx, const FileVideo& video, const Window& window) {
  const std::unique_ptr<MediaFile> file = open_video(video);
  const AVStream* const track = file->last_sound();
  if (track == nullptr) return std::nullopt;
  HostMemory memory(ctx);
  SoundReader reader(*file, *track, window.start, window.duration, memory);
  VideoSink sink;
  sink.picture = [](AVFrame&) { return false; };
  sink.sound = [&](AVFrame& frame) { return reader.take(frame); };
  sink.between = [&] {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
  };
  decode_video(*file, window, sink);
  return reader.sound(ctx);
}

Colours colours_of_stream(const AVCodecParameters& parameters, const std::string& color_space,
                          const std::string& encoder) {
  Colours colours = colours_of(color_space, encoder);
  if (parameters.color_space != AVCOL_SPC_UNSPECIFIED && parameters.color_space != AVCOL_SPC_RGB)
    colours.matrix = parameters.color_space;
  if (parameters.color_primaries != AVCOL_PRI_UNSPECIFIED)
    colours.primaries = parameters.color_primaries;
  if (parameters.color_trc != AVCOL_TRC_UNSPECIFIED) colours.transfer = parameters.color_trc;
  return colours;
}

// The last row or column, which H.264 has no place for, is left out.
std::optional<Crop> even_crop(const FileVideo& video, const VideoFacts& facts) {
  if (facts.width % 2 == 0 && facts.height % 2 == 0) return video.crop;
  Crop crop = video.crop.value_or(Crop{0, 0, facts.width, facts.height});
  crop.width = std::max<std::int64_t>(1, facts.width - facts.width % 2);
  crop.height = std::max<std::int64_t>(1, facts.height - facts.height % 2);
  return crop;
}

// Pictures with their times on the way into an encoder.
class TimedPictures {
 public:
  TimedPictures(StreamWriter& stream, const VideoCoding& coding, PixelReader& reader)
      : stream_(stream),
        step_(std::max<std::int64_t>(
            1, av_rescale_q(1, av_inv_q(coding.frame_rate), coding.time_base))),
        reader_(reader),
        writer_(coding.width, coding.height,
                coding.format == AV_PIX_FMT_YUV420P10 ? AV_PIX_FMT_RGB48 : AV_PIX_FMT_RGB24,
                coding.format, coding.colours),
        seconds_(av_q2d(coding.time_base)) {}

  void write(const AVFrame& frame) {
    const std::int64_t given =
        frame.pts != AV_NOPTS_VALUE ? frame.pts : frame.best_effort_timestamp;
    if (count_ == 0) first_ = given;
    const bool is_later =
        given != AV_NOPTS_VALUE && first_ != AV_NOPTS_VALUE && given - first_ > last_;
    last_ = count_ == 0 ? 0 : is_later ? given - first_ : last_ + step_;
    AVFrame& coded = writer_.write(reader_.read(frame));
    coded.pts = last_;
    stream_.write(&coded);
    ++count_;
  }
  std::int64_t count() const { return count_; }
  double end() const { return static_cast<double>(last_ + step_) * seconds_; }

 private:
  StreamWriter& stream_;
  const std::int64_t step_;
  PixelReader& reader_;
  PixelWriter writer_;
  const double seconds_;
  std::int64_t first_ = 0, last_ = 0, count_ = 0;
};

}  // namespace

bool can_copy(const MediaFile& file, const FileVideo& video, const VideoFormat& format) {
  if (format.crf || video.start_time != 0 || video.duration != 0 || video.crop) return false;
  if (!has_name(file.raw()->iformat->name, container_name(format.container))) return false;
  const AVCodecID codec = file.require_pictures().codecpar->codec_id;
  if (format.codec == "h264" && codec != AV_CODEC_ID_H264) return false;
  if (format.codec == "av1" && codec != AV_CODEC_ID_AV1) return false;
  if (format.container != "webm") return true;
  const std::span streams(file.raw()->streams, file.raw()->nb_streams);
  return std::ranges::all_of(streams, [](const AVStream* stream) { return fits_webm(*stream); });
}

std::string copy_streams(Context& ctx, MediaFile& file, const VideoFormat& format,
                         const Tags& tags) {
  MediaWriter writer(container_name(format.container), with_texts_of(file, tags));
  std::vector<AVStream*> copies(file.raw()->nb_streams, nullptr);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const AVStream& from = *file.raw()->streams[i];
    if (!is_copied(from) || from.codecpar->codec_id == AV_CODEC_ID_NONE) continue;
    copies[i] = avformat_new_stream(writer.raw(), nullptr);
    if (copies[i] == nullptr || avcodec_parameters_copy(copies[i]->codecpar, from.codecpar) < 0)
      throw std::bad_alloc();
    copies[i]->codecpar->codec_tag = 0;
    copies[i]->time_base = from.time_base;
    copies[i]->avg_frame_rate = from.avg_frame_rate;
    copies[i]->disposition = from.disposition;
    std::size_t size = 0;
    if (const std::uint8_t* const turn =
            av_stream_get_side_data(&from, AV_PKT_DATA_DISPLAYMATRIX, &size)) {
      std::uint8_t* const to = av_stream_new_side_data(copies[i], AV_PKT_DATA_DISPLAYMATRIX, size);
      if (to == nullptr) throw std::bad_alloc();
      std::memcpy(to, turn, size);
    }
  }
  writer.begin();
  const Held<AVPacket> packet = held(av_packet_alloc());
  while (file.next(*packet)) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    const auto index = static_cast<std::size_t>(packet->stream_index);
    if (index >= copies.size() || copies[index] == nullptr || packet->dts == AV_NOPTS_VALUE)
      continue;
    av_packet_rescale_ts(packet.get(), file.raw()->streams[index]->time_base,
                         copies[index]->time_base);
    packet->stream_index = copies[index]->index;
    packet->pos = -1;
    if (const int code = av_interleaved_write_frame(writer.raw(), packet.get()); code < 0)
      refuse_media(file.name(), "its streams cannot be copied: " + error_text(code) +
                                    ". Ask for another codec or a crf.");
  }
  return writer.finish();
}

std::string transcode(Context& ctx, const FileVideo& video, const VideoFormat& format,
                      const Tags& tags) {
  const std::unique_ptr<MediaFile> file = open_video(video);
  const AVStream& stream = file->require_pictures();
  const VideoFacts facts = facts_of(*file, video.crop);
  const Window window = window_of(video, *file);
  const std::optional<Sound> sound = sound_of_file(ctx, video, window);
  const bool is_deep = facts.bit_depth >= 10;
  PixelReader reader(quarter_turns(stream), even_crop(video, facts),
                     is_deep ? PixelReader::Depth::u16 : PixelReader::Depth::u8);
  MediaWriter writer(container_name(format.container), with_texts_of(*file, tags));
  std::optional<StreamWriter> pictures, track;
  std::optional<TimedPictures> timed;
  std::optional<SoundRows> rows;
  std::optional<SoundFeeder> feeder;
  const auto begin = [&] {
    VideoCoding coding = video_coding(format, reader.width(), reader.height(), facts.bit_depth);
    coding.colours = colours_of_stream(*stream.codecpar, facts.color_space, coding.encoder);
    coding.frame_rate = av_d2q(facts.rate.value(), 1 << 20);
    coding.time_base = stream.time_base;
    coding.reorders = false;
    pictures.emplace(writer, coding);
    if (sound) track.emplace(writer, sound_coding(format, *sound));
    writer.begin();
    timed.emplace(*pictures, coding, reader);
    if (!sound) return;
    rows.emplace(ctx, *sound, sound->samples());
    feeder.emplace(*track, rows->rows(), static_cast<int>(sound->sample_rate));
  };
  VideoSink sink;
  sink.picture = [&](AVFrame& frame) {
    require_readable(*file, reader, frame);
    if (!timed) begin();
    timed->write(frame);
    if (feeder) feeder->write_until(timed->end());
    return true;
  };
  sink.between = [&] {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
  };
  const std::size_t damaged = decode_video(*file, window, sink);
  if (!timed)
    refuse_media(file->name(),
                 "no picture of this video can be decoded, or none lies in that time.");
  if (damaged > 0)
    ctx.warn(file->name() + ": " + std::to_string(damaged) + " damaged packets are left out.");
  pictures->write(nullptr);
  if (feeder) feeder->finish();
  return writer.finish();
}

}  // namespace heddle::video
