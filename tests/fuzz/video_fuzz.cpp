// libFuzzer target: files of video and sound, as the nodes read them. Whatever the bytes, pictures
// and samples come out whole, or there is an Error with the file's name in front. FFmpeg's
// libraries are the system's, not instrumented; what is searched is what is done with what they
// give. Build: clang++ -fsanitize=fuzzer,address,undefined.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory_resource>
#include <string_view>
#include <vector>

#include "plugins/video/read_sound.h"
#include "plugins/video/read_video.h"

namespace {

using namespace heddle;
using namespace heddle::video;

constexpr std::uint64_t kMostPixelsRead = 1 << 16;  // larger ones would only slow the search
constexpr int kMostPictures = 8;

void require_media(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

std::unique_ptr<MediaFile> open_bytes(std::span<const std::uint8_t> bytes) {
  return std::make_unique<MediaFile>(memory_source(bytes), "fuzz", MediaLimits{kMostPixelsRead});
}

// As the nodes do it: the pictures are counted, then the file is opened again and decoded.
void read_moving_pictures(std::span<const std::uint8_t> bytes) {
  const Window whole, part{0.2, 0.3};
  const std::optional<Crop> crop = Crop{1, 1, 5, 3};
  std::unique_ptr<MediaFile> file = open_bytes(bytes);
  const VideoFacts facts = facts_of(*file, std::nullopt);
  require_media(facts.rate.numerator > 0 && facts.rate.denominator > 0, "a rate is above 0");
  require_media(std::isfinite(facts.duration) && facts.duration >= 0, "a duration is a number");
  require_media(count_pictures(*file, whole) >= 0, "pictures are counted");
  for (const bool is_cut : {false, true}) {
    file = open_bytes(bytes);
    PixelReader pixels(quarter_turns(file->require_pictures()), is_cut ? crop : std::nullopt,
                       PixelReader::Depth::f32);
    SoundReader sound(*file, file->last_sound() ? *file->last_sound() : file->require_pictures(), 0,
                      0, *std::pmr::get_default_resource());
    std::vector<float> rgb;
    int count = 0;
    VideoSink sink;
    sink.picture = [&](AVFrame& frame) {
      // What no node holds in memory is refused before it comes here.
      if (static_cast<std::uint64_t>(frame.width) * static_cast<std::uint64_t>(frame.height) >
          kMostPixelsRead)
        return false;
      require_readable(*file, pixels, frame);
      require_media(pixels.width() > 0 && pixels.height() > 0, "sizes make sense");
      rgb.resize(static_cast<std::size_t>(pixels.width() * pixels.height() * 3));
      pixels.read(frame, rgb.data());
      return ++count < kMostPictures;
    };
    sink.sound = [&](AVFrame& frame) { return sound.take(frame); };
    decode_video(*file, is_cut ? part : whole, sink);
  }
}

void read_track(std::span<const std::uint8_t> bytes) {
  const std::unique_ptr<MediaFile> file = open_bytes(bytes);
  AVStream& stream = file->require_sound();
  Decoder decoder(*file, stream);
  SoundReader reader(*file, stream, 0.1, 0.5, *std::pmr::get_default_resource());
  const auto take = [&](AVFrame& frame) { return reader.take(frame); };
  const Held<AVPacket> packet = held(video::av_packet_alloc());
  bool wants_more = true;
  while (wants_more && file->next(*packet))
    if (packet->stream_index == stream.index) wants_more = decoder.decode(packet.get(), take);
  if (wants_more) decoder.decode(nullptr, take);
}

void try_media(void (*read)(std::span<const std::uint8_t>), std::span<const std::uint8_t> bytes) {
  try {
    read(bytes);
  } catch (const Error& error) {
    require_media(std::string_view(error.what()).starts_with("fuzz: "),
                  "an error starts with the file's name");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try_media(&read_moving_pictures, {data, size});
  try_media(&read_track, {data, size});
  return 0;
}
