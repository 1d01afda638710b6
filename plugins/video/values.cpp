#include "plugins/video/values.h"

#include <cmath>
#include <numeric>

namespace heddle::video {
namespace {

[[noreturn]] void refuse_value(const char* port, const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT, std::string(port) + ": " + what);
}

std::optional<Crop> crop_of(const Value& value) {
  if (value.count() != 4) return std::nullopt;
  const auto number = [&](std::uint32_t i) { return value.item(i).as<std::int64_t>(); };
  return Crop{number(0), number(1), number(2), number(3)};
}

FileVideo file_of(const Value& value) {
  return {value.get("path", std::string()), value.field("file"), value.get("start_time", 0.0),
          value.get("duration", 0.0), crop_of(value.field("crop"))};
}

Pictures pictures_of(const Value& value, const char* port) {
  Pictures pictures{value.field("images").as<Tensor>(),
                    sound_or_none(value.field("audio"), port),
                    {},
                    value.get("bit_depth", std::int64_t{8}),
                    value.get("color_space", std::string("sRGB"))};
  const Value rate = value.field("frame_rate");
  if (rate.count() == 2)
    pictures.rate = {rate.item(0).as<std::int64_t>(), rate.item(1).as<std::int64_t>()};
  const Shape shape = pictures.images.shape();
  const bool fits = shape.size() == 4 && shape[1] > 0 && shape[2] > 0 && shape[3] >= 3 &&
                    shape[3] <= 4 && pictures.images.dtype() == HEDDLE_F32;
  if (!fits || pictures.rate.numerator <= 0 || pictures.rate.denominator <= 0)
    refuse_value(port,
                 "the pictures of a VIDEO are (frames, height, width, 3 or 4) of f32, with a rate "
                 "above 0. Make it with CreateVideo.");
  return pictures;
}

}  // namespace

Rate exact_rate(double per_second) {
  int exponent = 0;
  const double part = std::frexp(per_second, &exponent);  // 0.5 <= part < 1
  constexpr int kDigits = 53;
  const auto whole = static_cast<std::int64_t>(std::ldexp(part, kDigits));
  const int shift = kDigits - exponent;
  const int zeros = whole == 0 ? 0 : __builtin_ctzll(static_cast<std::uint64_t>(whole));
  if (!(per_second > 0) || shift - zeros > 62 || exponent > 62)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a rate of " + std::to_string(per_second) + " pictures in a second is no rate.");
  if (shift <= zeros) return {whole >> zeros << (zeros - shift), 1};
  return {whole >> zeros, std::int64_t{1} << (shift - zeros)};
}

Rate rate_in_thousandths(const Rate& rate) {
  const __int128 scaled = static_cast<__int128>(rate.numerator) * 1000;
  __int128 whole = scaled / rate.denominator;
  const __int128 rest = scaled % rate.denominator * 2;
  if (rest > rate.denominator || (rest == rate.denominator && whole % 2 != 0)) ++whole;
  const std::int64_t thousandths = whole < 1           ? 1
                                   : whole > INT32_MAX ? INT32_MAX
                                                       : static_cast<std::int64_t>(whole);
  const std::int64_t divisor = std::gcd(thousandths, std::int64_t{1000});
  return {thousandths / divisor, 1000 / divisor};
}

Video video_of(const Value& value, const char* port) {
  if (value.has("images")) return pictures_of(value, port);
  if (value.has("path") || value.has("file")) return file_of(value);
  const Value list = value.field("videos");
  if (list.count() == 0) refuse_value(port, "this is no VIDEO. Link one.");
  VideoList videos{{}, sound_or_none(value.field("audio"), port)};
  for (std::uint32_t i = 0; i < list.count(); ++i) videos.videos.push_back(list.item(i));
  return videos;
}

Sound sound_of(const Value& value, const char* port) {
  if (std::optional<Sound> sound = sound_or_none(value, port)) return *std::move(sound);
  refuse_value(port, "there is no sound: the video that it comes from may have none.");
}

std::optional<Sound> sound_or_none(const Value& value, const char* port) {
  if (value.is(HEDDLE_KIND_NONE)) return std::nullopt;
  const Value waveform = value.field("waveform"), rate = value.field("sample_rate");
  if (!waveform.is(HEDDLE_KIND_TENSOR) || !rate.is(HEDDLE_KIND_INT))
    refuse_value(port, "this is no AUDIO. Link one.");
  Sound sound{waveform.as<Tensor>(), rate.as<std::int64_t>()};
  constexpr std::int64_t kMostRate = 1 << 24;
  if (sound.waveform.rank() != 3 || sound.waveform.dtype() != HEDDLE_F32 || sound.batch() < 1 ||
      sound.channels() < 1 || sound.sample_rate < 1 || sound.sample_rate > kMostRate)
    refuse_value(port,
                 "an AUDIO has a waveform (batch, channels, samples) of f32 and a sample rate from "
                 "1 to 2^24.");
  return sound;
}

Value to_value(const Sound& sound) {
  return Record()
      .set("waveform", value_of(sound.waveform))
      .set("sample_rate", value_of(sound.sample_rate))
      .value();
}
Value to_value(const std::optional<Sound>& sound) {
  return sound ? to_value(*sound) : made_value(services.value->make_none());
}

Value to_value(const Video& video) {
  Record record;
  if (const auto* file = std::get_if<FileVideo>(&video)) {
    if (file->path.empty())
      record.set("file", file->bytes);
    else
      record.set("path", value_of(file->path));
    record.set("start_time", value_of(file->start_time));
    record.set("duration", value_of(file->duration));
    if (const std::optional<Crop>& crop = file->crop)
      record.set("crop", list_of({value_of(crop->x), value_of(crop->y), value_of(crop->width),
                                  value_of(crop->height)}));
  } else if (const auto* pictures = std::get_if<Pictures>(&video)) {
    record.set("images", value_of(pictures->images));
    if (pictures->sound) record.set("audio", to_value(*pictures->sound));
    record.set("frame_rate",
               list_of({value_of(pictures->rate.numerator), value_of(pictures->rate.denominator)}));
    record.set("bit_depth", value_of(pictures->bit_depth));
    record.set("color_space", value_of(pictures->color_space));
  } else {
    const auto& list = std::get<VideoList>(video);
    record.set("videos", list_of(list.videos));
    if (list.sound) record.set("audio", to_value(*list.sound));
  }
  return record.value();
}

}  // namespace heddle::video
