#include "plugins/image/apng.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "plugins/image/orientation.h"

namespace heddle::image {
namespace {

constexpr std::string_view kSignature("\x89PNG\r\n\x1a\n", 8);
constexpr std::size_t kFrameOfChunk = 12;  // length, name and checksum
enum class Dispose : std::uint8_t { none, background, previous };

struct Chunk {
  std::string_view name, content;
};

std::uint32_t big_endian(std::string_view bytes, std::size_t at, std::size_t width = 4) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < width; ++i)
    value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  return value;
}

void put_big_endian(std::string& to, std::uint32_t value, std::size_t width = 4) {
  for (std::size_t i = width; i-- > 0;) to += static_cast<char>(value >> (8 * i) & 0xff);
}

void put_chunk(std::string& to, std::string_view name, std::string_view content) {
  put_big_endian(to, static_cast<std::uint32_t>(content.size()));
  const std::size_t begin = to.size();
  to.append(name).append(content);
  const auto* bytes = reinterpret_cast<const Bytef*>(to.data() + begin);
  put_big_endian(
      to, static_cast<std::uint32_t>(::crc32(0, bytes, static_cast<uInt>(to.size() - begin))));
}

// The chunks of a file up to its end, or to what is cut off.
std::vector<Chunk> chunks_of(std::string_view file) {
  std::vector<Chunk> chunks;
  std::size_t at = kSignature.size();
  while (at < file.size() && file.size() - at >= kFrameOfChunk) {
    const std::size_t length = big_endian(file, at);
    if (length > file.size() - at - kFrameOfChunk) break;
    chunks.push_back({file.substr(at + 4, 4), file.substr(at + 8, length)});
    at += kFrameOfChunk + length;
  }
  return chunks;
}

// One picture of an animation: a fcTL chunk, and a PNG file made of its pixels.
struct ApngFrame {
  std::uint32_t width = 0, height = 0, x = 0, y = 0;
  Dispose dispose = Dispose::none;
  bool is_over = false;  // blended over what is there
  std::string pixels;    // as IDAT has them
};

class ApngReader {
 public:
  ApngReader(const EncodedPicture& file, const std::vector<Chunk>& chunks, PngContent first)
      : file_(file), orientation_(exif_orientation(first.exif)), default_(std::move(first)) {
    for (const Chunk& chunk : chunks) take(chunk);
  }

  std::vector<Frame> read() {
    if (default_frames_ > 0) keep(default_.picture);
    check_pixels(file_, default_.picture.width, default_.picture.height,
                 frames_.size() + default_frames_);
    for (const ApngFrame& frame : frames_) show(frame);
    if (result_.empty()) keep(default_.picture);
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { refuse_picture(file_, "PNG", why); }

  void take(const Chunk& chunk) {
    if (chunk.name == "IHDR") {
      header_ = chunk.content;
    } else if (chunk.name == "PLTE" || chunk.name == "tRNS") {
      put_chunk(colours_, chunk.name, chunk.content);
    } else if (chunk.name == "fcTL") {
      take_control(chunk.content);
    } else if (chunk.name == "IDAT") {
      if (frames_.empty())
        default_frames_ = 1;
      else
        frames_.back().pixels.append(chunk.content);
    } else if (chunk.name == "fdAT" && chunk.content.size() >= 4) {
      if (frames_.empty()) refuse("its animation has pixels of no picture");
      frames_.back().pixels.append(chunk.content.substr(4));
    }
  }

  void take_control(std::string_view content) {
    if (content.size() < 26) refuse("its animation makes no sense");
    ApngFrame frame{big_endian(content, 4), big_endian(content, 8), big_endian(content, 12),
                    big_endian(content, 16)};
    frame.dispose = Dispose(content[24]);
    frame.is_over = content[25] == 1;
    const std::uint32_t width = default_.picture.width, height = default_.picture.height;
    const bool fits = frame.width > 0 && frame.height > 0 && frame.width <= width &&
                      frame.height <= height && frame.x <= width - frame.width &&
                      frame.y <= height - frame.height;
    if (!fits) refuse("a picture of its animation lies outside of it");
    frames_.push_back(std::move(frame));
  }

  // The pixels by themselves, as a whole file; `whole` holds it.
  Picture decoded(const ApngFrame& frame) const {
    std::string header, whole(kSignature);
    put_big_endian(header, frame.width);
    put_big_endian(header, frame.height);
    header.append(header_.substr(8));
    put_chunk(whole, "IHDR", header);
    whole += colours_;
    put_chunk(whole, "IDAT", frame.pixels);
    put_chunk(whole, "IEND", "");
    EncodedPicture file = file_;
    file.bytes = {reinterpret_cast<const std::uint8_t*>(whole.data()), whole.size()};
    return read_png(file).picture;
  }

  void show(const ApngFrame& frame) {
    const Picture picture = decoded(frame);
    if (canvas_.pixels.empty()) {
      canvas_ = {default_.picture.width, default_.picture.height, picture.channels,
                 Bytes(file_.memory)};
      canvas_.pixels.resize(std::size_t{canvas_.width} * canvas_.height * canvas_.channels, 0);
    }
    // Before there is anything, what was there is nothing.
    const bool restores = frame.dispose == Dispose::previous && has_shown_;
    const Bytes before = restores ? canvas_.pixels : Bytes(file_.memory);
    for (std::uint32_t y = 0; y < frame.height; ++y) blend(frame, picture, y);
    keep(canvas_);
    if (restores)
      canvas_.pixels = before;
    else if (frame.dispose != Dispose::none)
      for (std::uint32_t y = 0; y < frame.height; ++y)
        std::fill_n(row(frame, y), std::size_t{frame.width} * canvas_.channels, std::uint8_t{0});
    has_shown_ = true;
  }

  std::uint8_t* row(const ApngFrame& frame, std::uint32_t y) {
    return canvas_.pixels.data() +
           (std::size_t{frame.y + y} * canvas_.width + frame.x) * canvas_.channels;
  }

  void blend(const ApngFrame& frame, const Picture& picture, std::uint32_t y) {
    const std::size_t channels = canvas_.channels, count = frame.width * channels;
    const std::uint8_t* from = picture.pixels.data() + y * count;
    std::uint8_t* to = row(frame, y);
    for (std::size_t i = 0; i < count; ++i) {
      const bool mixes = frame.is_over && has_shown_ && channels == 4;
      const unsigned alpha = mixes ? from[i / 4 * 4 + 3] : 255u;
      const unsigned sum = from[i] * alpha + to[i] * (255u - alpha) + 128u;
      mixed_.push_back(static_cast<std::uint8_t>(((sum >> 8) + sum) >> 8));
    }
    std::copy(mixed_.begin(), mixed_.end(), to);
    mixed_.clear();
  }

  void keep(const Picture& picture) {
    result_.push_back({upright(picture, orientation_), default_.alpha});
  }

  const EncodedPicture& file_;
  const int orientation_;
  PngContent default_;              // what plain readers show
  std::size_t default_frames_ = 0;  // 1 where that is no part of the animation
  std::string_view header_;
  std::string colours_;  // chunks that every picture shares
  std::vector<ApngFrame> frames_;
  Picture canvas_;
  bool has_shown_ = false;
  std::vector<std::uint8_t> mixed_;  // one row
  std::vector<Frame> result_;
};

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The parts of an animation, in the order in which they stand in the file.
class ApngWriter {
 public:
  ApngWriter(std::size_t count, const ApngSettings& settings)
      : count_(count), settings_(settings) {}

  void add(std::string_view png, const Picture& picture) {
    for (const Chunk& chunk : chunks_of(png)) {
      if (chunk.name == "IHDR" && file_.empty()) {
        file_ = kSignature;
        put_chunk(file_, chunk.name, chunk.content);
        header_ = std::string(chunk.content);
        std::string animation;
        put_big_endian(animation, static_cast<std::uint32_t>(count_));
        put_big_endian(animation, 0);  // without end
        if (count_ > 1) put_chunk(file_, "acTL", animation);
      } else if (chunk.name == "IHDR" && header_ != chunk.content) {
        throw Error(HEDDLE_INTERNAL, "pictures of one animation differ in size");
      }
      if (chunk.name == "IHDR" && count_ > 1) put_control(picture);
      if (chunk.name == "IDAT") put_pixels(chunk.content);
    }
    is_first_ = false;
  }

  std::string finish() {
    for (const std::string& note : settings_.notes) put_chunk(file_, "comf", note);
    put_chunk(file_, "IEND", "");
    return std::move(file_);
  }

 private:
  void put_control(const Picture& picture) {
    std::string control;
    put_big_endian(control, sequence_++);
    put_big_endian(control, picture.width);
    put_big_endian(control, picture.height);
    put_big_endian(control, 0);
    put_big_endian(control, 0);
    put_big_endian(control, static_cast<std::uint32_t>(std::min(settings_.duration_ms, 0xffff)), 2);
    put_big_endian(control, 1000, 2);
    control.append(2, '\0');  // left as it is, and in the place of what was there
    put_chunk(file_, "fcTL", control);
  }

  void put_pixels(std::string_view content) {
    if (is_first_) return put_chunk(file_, "IDAT", content);
    std::string numbered;
    put_big_endian(numbered, sequence_++);
    put_chunk(file_, "fdAT", numbered.append(content));
  }

  std::size_t count_;
  const ApngSettings& settings_;
  std::string file_, header_;
  std::uint32_t sequence_ = 0;
  bool is_first_ = true;
};

}  // namespace

std::vector<Frame> read_png_frames(const EncodedPicture& file) {
  PngContent first = read_png(file);
  const std::vector<Chunk> chunks = chunks_of(text_of(file.bytes));
  const auto moves = std::find_if(chunks.begin(), chunks.end(), [](const Chunk& chunk) {
    return chunk.name == "acTL" || chunk.name == "IDAT";
  });
  if (moves != chunks.end() && moves->name == "acTL")
    return ApngReader(file, chunks, std::move(first)).read();
  std::vector<Frame> frames;
  const int orientation = exif_orientation(first.exif);
  frames.push_back({upright(std::move(first.picture), orientation), first.alpha});
  return frames;
}

std::string write_apng(std::size_t count, const std::function<Picture(std::size_t)>& frame,
                       const ApngSettings& settings, const std::function<bool()>& cancelled) {
  ApngWriter writer(count, settings);
  for (std::size_t i = 0; i < count; ++i) {
    const Picture picture = frame(i);
    writer.add(text_of(write_png(picture, {}, settings.level, cancelled)), picture);
  }
  return writer.finish();
}

}  // namespace heddle::image
