#include "plugins/image/gif.h"

#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace heddle::image {
namespace {

struct GifSource {
  const std::uint8_t* next;
  std::size_t left;
};

int take_gif(GifFileType* gif, GifByteType* to, int size) {
  auto* source = static_cast<GifSource*>(gif->UserData);
  const std::size_t count = std::min(std::size_t(std::max(size, 0)), source->left);
  std::memcpy(to, source->next, count);
  source->next += count;
  source->left -= count;
  return int(count);
}

using CanvasColour = std::array<std::uint8_t, 4>;
struct Box {
  std::int64_t left, top, width, height;
};

// What a frame is drawn by: its place, its colours, and what becomes of it afterwards.
struct GifFrame {
  Box box{};
  const ColorMapObject* colours = nullptr;  // none: greys
  std::optional<int> transparent;           // index

  std::array<std::uint8_t, 3> colour(int index) const {
    if (colours == nullptr) return {std::uint8_t(index), std::uint8_t(index), std::uint8_t(index)};
    if (index >= colours->ColorCount) return {0, 0, 0};
    const GifColorType& c = colours->Colors[index];
    return {c.Red, c.Green, c.Blue};
  }
  CanvasColour clear(int index) const {
    const auto c = colour(index);
    return {c[0], c[1], c[2], 0};
  }
};

// Colours that are their own indices are no palette to Pillow.
bool are_greys(const ColorMapObject* colours) {
  for (int i = 0; colours != nullptr && i < colours->ColorCount; ++i) {
    const GifColorType& c = colours->Colors[i];
    if (c.Red != i || c.Green != i || c.Blue != i) return false;
  }
  return true;
}

// The picture that the frames are drawn on, RGBA.
class GifCanvas {
 public:
  GifCanvas(std::int64_t width, std::int64_t height, const CanvasColour& colour)
      : width_(width), height_(height), pixels_(std::size_t(width * height * 4)) {
    fill({0, 0, width, height}, colour);
  }

  bool holds(const Box& box) const {
    return box.left + box.width <= width_ && box.top + box.height <= height_;
  }
  std::uint8_t* at(std::int64_t x, std::int64_t y) { return pixels_.data() + (y * width_ + x) * 4; }
  void fill(const Box& box, const CanvasColour& colour) {
    for (std::int64_t y = 0; y < box.height; ++y)
      for (std::int64_t x = 0; x < box.width; ++x)
        std::copy(colour.begin(), colour.end(), at(box.left + x, box.top + y));
  }
  std::vector<std::uint8_t> copy(const Box& box) {
    std::vector<std::uint8_t> kept;
    for (std::int64_t y = 0; y < box.height; ++y) {
      const std::uint8_t* row = at(box.left, box.top + y);
      kept.insert(kept.end(), row, row + box.width * 4);
    }
    return kept;
  }
  void paste(const Box& box, const std::vector<std::uint8_t>& kept) {
    for (std::int64_t y = 0; y < box.height; ++y)
      std::copy_n(kept.begin() + y * box.width * 4, box.width * 4, at(box.left, box.top + y));
  }
  Picture picture(bool has_alpha, std::pmr::memory_resource* memory) const {
    Picture result{std::uint32_t(width_), std::uint32_t(height_), has_alpha ? 4u : 3u,
                   Bytes(memory)};
    result.pixels.resize(std::size_t(width_ * height_) * result.channels);
    for (std::size_t i = 0; i < pixels_.size() / 4; ++i)
      std::memcpy(result.pixels.data() + i * result.channels, pixels_.data() + 4 * i,
                  result.channels);
    return result;
  }

 private:
  std::int64_t width_, height_;
  std::vector<std::uint8_t> pixels_;
};

class GifReader {
 public:
  explicit GifReader(const EncodedPicture& file)
      : file_(file), source_{file.bytes.data(), file.bytes.size()} {
    int error = 0;
    gif_ = DGifOpen(&source_, &take_gif, &error);
    if (gif_ == nullptr) refuse(GifErrorString(error));
  }
  ~GifReader() {
    int error = 0;
    DGifCloseFile(gif_, &error);
  }
  GifReader(const GifReader&) = delete;
  GifReader& operator=(const GifReader&) = delete;

  std::vector<Frame> read() {
    std::vector<Frame> frames;
    while (find_image()) {
      const GifImageDesc& image = gif_->Image;
      GifFrame frame{{image.Left, image.Top, image.Width, image.Height},
                     image.ColorMap != nullptr ? image.ColorMap : gif_->SColorMap,
                     transparent_};
      if (are_greys(frame.colours)) frame.colours = nullptr;
      if (frames.empty()) {
        start(frame);
      } else if (!canvas_->holds(frame.box)) {
        break;  // it and those behind it are larger, and only pictures of one size make a batch
      }
      check_pixels(file_, std::uint64_t(width_), std::uint64_t(height_), frames.size() + 1);
      leave_last();
      remember(frame, frames.empty());
      draw(frame, frames.empty());
      const bool has_alpha = alpha_ != Alpha::none;
      // Every later picture is RGBA to Pillow where the first has a transparent colour.
      const Alpha alpha = frames.empty() || !has_alpha ? alpha_ : Alpha::channel;
      frames.push_back({canvas_->picture(has_alpha, file_.memory), alpha});
      transparent_.reset();
    }
    if (frames.empty()) refuse("it has no picture");
    return frames;
  }

 private:
  [[noreturn]] void refuse(const char* why) const {
    refuse_picture(file_, "GIF",
                   source_.left == 0 ? "the file ends early"
                   : why == nullptr  ? "damaged"
                                     : why);
  }
  void require(int result) const {
    if (result == GIF_ERROR) refuse(GifErrorString(gif_->Error));
  }

  // Goes on to the next picture; extensions before it are read. A missing end mark is forgiven.
  bool find_image() {
    for (;;) {
      if (source_.left == 0) return false;
      GifRecordType type = UNDEFINED_RECORD_TYPE;
      require(DGifGetRecordType(gif_, &type));
      if (type == TERMINATE_RECORD_TYPE) return false;
      if (type == IMAGE_DESC_RECORD_TYPE) {
        require(DGifGetImageDesc(gif_));
        return true;
      }
      if (type == EXTENSION_RECORD_TYPE) read_extension();
    }
  }

  void read_extension() {
    int code = 0;
    GifByteType* block = nullptr;
    require(DGifGetExtension(gif_, &code, &block));
    if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr && block[0] >= 4) {
      if ((block[1] & 1) != 0) transparent_ = block[4];
      if (const int disposal = block[1] >> 2 & 7; disposal != 0) disposal_ = disposal;
    }
    while (block != nullptr) require(DGifGetExtensionNext(gif_, &block));
  }

  void start(const GifFrame& frame) {
    width_ = std::max<std::int64_t>(gif_->SWidth, frame.box.left + frame.box.width);
    height_ = std::max<std::int64_t>(gif_->SHeight, frame.box.top + frame.box.height);
    check_pixels(file_, std::uint64_t(width_), std::uint64_t(height_));
    const auto first = frame.colour(0);
    canvas_.emplace(width_, height_,
                    frame.transparent ? frame.clear(*frame.transparent)
                                      : CanvasColour{first[0], first[1], first[2], 255});
    if (frame.transparent) alpha_ = frame.colours == nullptr ? Alpha::colour_key : Alpha::palette;
  }

  // What the last frame asked to be done with its place before the next.
  void leave_last() {
    if (!last_) return;
    if (last_->kept.empty())
      canvas_->fill(last_->box, last_->colour);
    else
      canvas_->paste(last_->box, last_->kept);
    last_.reset();
  }

  void remember(const GifFrame& frame, bool is_first) {
    if (disposal_ == DISPOSE_BACKGROUND) {
      const auto background = frame.colour(gif_->SBackGroundColor);
      last_ =
          Left{frame.box,
               frame.transparent ? frame.clear(*frame.transparent)
                                 : CanvasColour{background[0], background[1], background[2], 255},
               {}};
    } else if (disposal_ == DISPOSE_PREVIOUS && !is_first) {
      last_ = Left{frame.box, {}, canvas_->copy(frame.box)};
    } else if (disposal_ == DISPOSE_PREVIOUS && frame.transparent) {
      last_ = Left{frame.box, frame.clear(*frame.transparent), {}};
    }
  }

  void draw(const GifFrame& frame, bool is_first) {
    const std::int64_t width = frame.box.width, height = frame.box.height;
    std::vector<GifPixelType> row(static_cast<std::size_t>(width));
    static constexpr int kFirst[] = {0, 4, 2, 1}, kStep[] = {8, 8, 4, 2};
    const bool is_interlaced = gif_->Image.Interlace;
    for (int pass = 0; pass < (is_interlaced ? 4 : 1); ++pass) {
      const std::int64_t step = is_interlaced ? kStep[pass] : 1;
      for (std::int64_t y = is_interlaced ? kFirst[pass] : 0; y < height; y += step) {
        if (width > 0) require(DGifGetLine(gif_, row.data(), int(width)));
        for (std::int64_t x = 0; x < width; ++x) {
          const bool is_clear = frame.transparent == int(row[std::size_t(x)]);
          if (is_clear && !is_first) continue;
          const auto c = frame.colour(row[std::size_t(x)]);
          const CanvasColour colour{c[0], c[1], c[2], std::uint8_t(is_clear ? 0 : 255)};
          std::copy(colour.begin(), colour.end(),
                    canvas_->at(frame.box.left + x, frame.box.top + y));
        }
      }
    }
  }

  // How a frame's place is left: filled with a colour, or with what was there.
  struct Left {
    Box box;
    CanvasColour colour;
    std::vector<std::uint8_t> kept;
  };

  const EncodedPicture& file_;
  GifSource source_;
  GifFileType* gif_ = nullptr;
  std::int64_t width_ = 0, height_ = 0;
  Alpha alpha_ = Alpha::none;
  std::optional<int> transparent_;  // of the next frame
  int disposal_ = 0;                // of the last frame that named one
  std::optional<GifCanvas> canvas_;
  std::optional<Left> last_;
};

}  // namespace

std::vector<Frame> read_gif(const EncodedPicture& file) { return GifReader(file).read(); }

}  // namespace heddle::image
