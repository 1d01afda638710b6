#include "plugins/video/components.h"

#include <algorithm>
#include <cmath>
#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/parts.hpp>

#include "plugins/video/read_video.h"

namespace heddle::video {
namespace {

[[noreturn]] void refuse_list(const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT, "videos: they cannot be put one after another: " + what);
}

std::string shape_of(const Tensor& images) {
  return std::to_string(images.size(2)) + " x " + std::to_string(images.size(1)) + " x " +
         std::to_string(images.size(3));
}

void copy_to(Context& ctx, const Tensor& from, float* to) {
  await_whole(ctx, from);
  const HostFloats values(ctx, from);
  std::copy_n(values.data(), values.size(), to);
}

Tensor joined_images(Context& ctx, const std::vector<Pictures>& parts) {
  const Tensor& first = parts[0].images;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Tensor& images = parts[i].images;
    if (images.size(1) != first.size(1) || images.size(2) != first.size(2) ||
        images.size(3) != first.size(3))
      refuse_list("the first has pictures of " + shape_of(first) + ", number " +
                  std::to_string(i + 1) + " of " + shape_of(images) + ". Scale or crop them.");
    if (!(parts[i].rate == parts[0].rate))
      refuse_list("the first has " + std::to_string(parts[0].rate.value()) +
                  " pictures in a second, number " + std::to_string(i + 1) + " has " +
                  std::to_string(parts[i].rate.value()) + ".");
    count = checked_sum({count, images.size(0)}, "videos");
  }
  const Tensor all =
      ctx.make_host({count, first.size(1), first.size(2), first.size(3)}, HEDDLE_F32);
  float* to = all.data<float>();
  for (const Pictures& part : parts) {
    copy_to(ctx, part.images, to);
    to += part.images.count();
  }
  return all;
}

// At most as long as the pictures.
Sound cut(Context&, const Sound& sound, double seconds) {
  const double most = std::nearbyint(seconds * static_cast<double>(sound.sample_rate));
  if (most >= static_cast<double>(sound.samples())) return sound;
  return {sound.waveform.slice(2, 0, static_cast<std::int64_t>(most)), sound.sample_rate};
}

std::optional<Sound> joined_sound(Context& ctx, const std::vector<Pictures>& parts) {
  const bool any =
      std::ranges::any_of(parts, [](const Pictures& part) { return part.sound.has_value(); });
  if (!any) return std::nullopt;
  std::int64_t samples = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::optional<Sound>& sound = parts[i].sound;
    if (!sound || !parts[0].sound)
      refuse_list("some have sound and some have none. Give complete_audio.");
    if (sound->sample_rate != parts[0].sound->sample_rate ||
        sound->channels() != parts[0].sound->channels() ||
        sound->batch() != parts[0].sound->batch())
      refuse_list("their sound differs in its rate or its channels. Give complete_audio.");
    samples = checked_sum({samples, sound->samples()}, "videos");
  }
  const Sound& first = *parts[0].sound;
  const std::int64_t runs = first.batch() * first.channels();
  Sound all{ctx.make_host({first.batch(), first.channels(), samples}, HEDDLE_F32),
            first.sample_rate};
  std::int64_t at = 0;
  for (const Pictures& part : parts) {
    const HostFloats values(ctx, part.sound->waveform);
    const std::int64_t count = part.sound->samples();
    for (std::int64_t run = 0; run < runs; ++run)
      std::copy_n(values.data() + run * count, count,
                  all.waveform.data<float>() + run * samples + at);
    at += count;
  }
  return all;
}

Pictures joined(Context& ctx, const VideoList& list, const char* port) {
  std::vector<Pictures> parts;
  for (const Value& video : list.videos) parts.push_back(components(ctx, video, port));
  Pictures all = parts[0];
  all.images = joined_images(ctx, parts);
  all.sound = list.sound ? list.sound : joined_sound(ctx, parts);
  if (all.sound)
    all.sound = cut(ctx, *all.sound, static_cast<double>(all.images.size(0)) / all.rate.value());
  return all;
}

[[noreturn]] void refuse_trim(double length, double start, double duration) {
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "the video of " + std::to_string(length) + " s cannot be cut to " +
                  (duration > 0 ? std::to_string(duration) + " s" : std::string("what is left")) +
                  " from " + std::to_string(start) + " s on. Give a time within it.");
}

double seconds_of(const Pictures& pictures) {
  return static_cast<double>(pictures.images.size(0)) / pictures.rate.value();
}

// Pictures that begin within the time, as of files.
Pictures trimmed_pictures(const Pictures& pictures, double start, double duration) {
  const std::int64_t count = pictures.images.size(0);
  const double rate = pictures.rate.value(), end = start + duration;
  // A time that was meant to be a picture's may miss it by a rounding.
  const auto index = [&](double seconds) {
    const double at = std::ceil(seconds * rate - 1e-6);
    return at >= static_cast<double>(count) ? count : at <= 0 ? 0 : static_cast<std::int64_t>(at);
  };
  const std::int64_t first = index(start), last = duration > 0 ? index(end) : count;
  if (first >= last) refuse_trim(seconds_of(pictures), start, duration);
  Pictures part = pictures;
  part.images = pictures.images.slice(0, first, last);
  if (!pictures.sound) return part;
  const Sound& sound = *pictures.sound;
  const auto sample = [&](double seconds) {
    const double at = seconds * static_cast<double>(sound.sample_rate);
    return at >= static_cast<double>(sound.samples()) ? sound.samples()
                                                      : static_cast<std::int64_t>(at);
  };
  const std::int64_t from = sample(start), to = duration > 0 ? sample(end) : sound.samples();
  if (from < to)
    part.sound = Sound{sound.waveform.slice(2, from, to), sound.sample_rate};
  else
    part.sound.reset();
  return part;
}

double seconds_of(const FileVideo& file) {
  const double whole = facts_of(*open_video(file), file.crop).duration;
  const double rest =
      file.start_time < 0 ? std::min(whole, -file.start_time) : whole - file.start_time;
  return file.duration > 0 ? std::min(file.duration, rest) : rest;
}

Value trimmed_file(FileVideo file, double start, double duration, bool strict) {
  const bool is_known = facts_of(*open_video(file), std::nullopt).duration > 0;
  const double before = seconds_of(file);
  file.start_time += start;
  file.duration = duration;
  const double left = seconds_of(file);
  // Of a file that does not say how long it is, whoever decodes it finds out.
  if (is_known && (left <= 0 || (strict && left < duration))) refuse_trim(before, start, duration);
  return to_value(file);
}

}  // namespace

Pictures components(Context& ctx, const Value& value, const char* port) {
  const Video video = video_of(value, port);
  if (const auto* const pictures = std::get_if<Pictures>(&video)) return *pictures;
  if (const auto* const file = std::get_if<FileVideo>(&video)) return read_pictures(ctx, *file);
  return joined(ctx, std::get<VideoList>(video), port);
}

Value trimmed(Context& ctx, const Value& value, double start, double duration, bool strict) {
  if (!(duration >= 0))
    throw Error(HEDDLE_INVALID_ARGUMENT, "duration: " + std::to_string(duration) +
                                             " s is below 0. Give 0 for all that is left.");
  const Video video = video_of(value, "video");
  if (const auto* const file = std::get_if<FileVideo>(&video))
    return trimmed_file(*file, start, duration, strict);
  const Pictures pictures = components(ctx, value, "video");
  const double whole = seconds_of(pictures);
  const double from = start < 0 ? std::max(0.0, whole + start) : start;
  // The same slack as for pictures.
  if (strict && duration > whole - from + 1e-6) refuse_trim(whole, start, duration);
  return to_value(trimmed_pictures(pictures, from, duration));
}

Value cropped(Context& ctx, const Value& value, const Crop& crop) {
  if (crop.width <= 0 || crop.height <= 0) return value;
  const Video video = video_of(value, "video");
  if (const auto* const given = std::get_if<FileVideo>(&video)) {
    FileVideo file = *given;
    const VideoFacts whole = facts_of(*open_video(file), std::nullopt);
    const Crop all{0, 0, whole.width, whole.height};
    const Crop outer =
        (file.crop ? clip(*file.crop, all.width, all.height) : std::nullopt).value_or(all);
    const std::optional<Crop> inner = clip(crop, outer.width, outer.height);
    if (!inner) return value;
    file.crop = Crop{outer.x + inner->x, outer.y + inner->y, inner->width, inner->height};
    return to_value(file);
  }
  Pictures pictures = components(ctx, value, "video");
  const auto part = clip(crop, pictures.images.size(2), pictures.images.size(1));
  if (!part) return value;
  pictures.images = pictures.images.slice(1, part->y, part->y + part->height)
                        .slice(2, part->x, part->x + part->width);
  return to_value(pictures);
}

double seconds_of(Context& ctx, const Value& value) {
  const Video video = video_of(value, "video");
  if (const auto* const file = std::get_if<FileVideo>(&video)) return seconds_of(*file);
  if (const auto* const pictures = std::get_if<Pictures>(&video)) return seconds_of(*pictures);
  double seconds = 0;
  for (const Value& part : std::get<VideoList>(video).videos) seconds += seconds_of(ctx, part);
  return seconds;
}

}  // namespace heddle::video
