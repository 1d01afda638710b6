#include "plugins/image/jpeg.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <jpeglib.h>

#include "plugins/image/orientation.h"

// libjpeg reports errors through error_exit(), which must not return. As with libpng, what stands
// between setjmp and the calls that may jump there are small noexcept functions without anything
// that has a destructor.

namespace heddle::image {
namespace {

constexpr int kExifMarker = JPEG_APP0 + 1;
// A block of 8 x 8 samples takes a bit at least, and a picture may have 4 x 4 pixels a sample.
constexpr std::uint64_t kMostPixelsPerByte = 8 * 64 * 4;

struct JpegState {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_source_mgr source{};
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX] = "";
  bool has_ended = false;  // libjpeg asked for more than there is
};

[[noreturn]] void on_jpeg_error(j_common_ptr info) {
  auto* state = static_cast<JpegState*>(info->client_data);
  info->err->format_message(info, state->message);
  std::longjmp(state->back, 1);
}
void on_jpeg_message(j_common_ptr) {}

void start_source(j_decompress_ptr) {}
void end_source(j_decompress_ptr) {}
boolean more_source(j_decompress_ptr info) {
  static constexpr JOCTET kEnd[] = {0xff, JPEG_EOI};
  static_cast<JpegState*>(info->client_data)->has_ended = true;
  info->src->next_input_byte = kEnd;
  info->src->bytes_in_buffer = sizeof kEnd;
  return TRUE;
}
void skip_source(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  if (std::size_t(count) > info->src->bytes_in_buffer) {
    more_source(info);
    return;
  }
  info->src->next_input_byte += count;
  info->src->bytes_in_buffer -= std::size_t(count);
}

bool create_jpeg(JpegState* state) noexcept {
  if (setjmp(state->back) != 0) return false;
  jpeg_create_decompress(&state->info);
  jpeg_save_markers(&state->info, kExifMarker, 0xffff);
  return true;
}

bool read_jpeg_header(JpegState* state) noexcept {
  if (setjmp(state->back) != 0) return false;
  jpeg_read_header(&state->info, TRUE);
  return true;
}

bool start_jpeg(JpegState* state) noexcept {
  if (setjmp(state->back) != 0) return false;
  jpeg_start_decompress(&state->info);
  return true;
}

bool read_jpeg_row(JpegState* state, std::uint8_t* row) noexcept {
  if (setjmp(state->back) != 0) return false;
  while (jpeg_read_scanlines(&state->info, &row, 1) == 0) {
  }
  return true;
}

class JpegReader {
 public:
  explicit JpegReader(const EncodedPicture& file) : file_(file) {
    state_.info.err = jpeg_std_error(&state_.errors);
    state_.info.client_data = &state_;
    state_.errors.error_exit = &on_jpeg_error;
    state_.errors.output_message = &on_jpeg_message;
    require(create_jpeg(&state_));
    state_.source = {file.bytes.data(), file.bytes.size(),       &start_source, &more_source,
                     &skip_source,      &jpeg_resync_to_restart, &end_source};
    state_.info.src = &state_.source;
  }
  ~JpegReader() { jpeg_destroy_decompress(&state_.info); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  Frame read() {
    jpeg_decompress_struct& info = state_.info;
    require(read_jpeg_header(&state_));
    check_pixels(file_, info.image_width, info.image_height);
    const std::uint64_t pixels = std::uint64_t{info.image_width} * info.image_height;
    if (!info.arith_code && pixels > file_.bytes.size() * kMostPixelsPerByte)
      refuse("it says " + std::to_string(info.image_width) + " x " +
             std::to_string(info.image_height) + " pixels, but " +
             std::to_string(file_.bytes.size()) + " bytes cannot hold them");
    info.out_color_space = wanted();
    require(start_jpeg(&state_));
    if (state_.has_ended && jpeg_has_multiple_scans(&info)) refuse("the file ends early");
    Picture picture{info.output_width, info.output_height, 3, Bytes(file_.memory)};
    picture.pixels.resize(pixels * 3);
    std::vector<std::uint8_t> row(std::size_t{info.output_width} *
                                  std::size_t(info.output_components));
    for (std::uint32_t y = 0; y < picture.height; ++y) {
      require(read_jpeg_row(&state_, row.data()));
      if (state_.has_ended && state_.errors.num_warnings > 0) refuse("the file ends early");
      convert(row, picture.pixels.data() + std::size_t{y} * picture.width * 3);
    }
    return {upright(std::move(picture), exif_orientation(exif())), Alpha::none};
  }

 private:
  void require(bool fine) const {
    if (!fine) refuse(state_.has_ended ? "the file ends early" : state_.message);
  }
  [[noreturn]] void refuse(const std::string& why) const { refuse_picture(file_, "JPEG", why); }

  J_COLOR_SPACE wanted() const {
    switch (state_.info.num_components) {
      case 1:
        return JCS_GRAYSCALE;
      case 3:
        return JCS_RGB;
      case 4:
        return JCS_CMYK;
      default:
        refuse("it has " + std::to_string(state_.info.num_components) + " components");
    }
  }

  void convert(const std::vector<std::uint8_t>& row, std::uint8_t* rgb) const {
    const std::size_t step = std::size_t(state_.info.output_components);
    for (std::size_t i = 0; i < row.size(); i += step, rgb += 3) {
      if (step == 4) {  // Adobe's way, which others follow: 0 is full ink
        std::uint8_t ink[4];
        for (std::size_t c = 0; c < 4; ++c) ink[c] = std::uint8_t(255 - row[i + c]);
        cmyk_to_rgb(ink, rgb);
      } else {
        for (std::size_t c = 0; c < 3; ++c) rgb[c] = row[i + (step == 3 ? c : 0)];
      }
    }
  }

  std::span<const std::uint8_t> exif() const {
    constexpr std::string_view kPrefix("Exif\0\0", 6);
    for (const jpeg_marker_struct* m = state_.info.marker_list; m != nullptr; m = m->next) {
      const std::string_view data(reinterpret_cast<const char*>(m->data), m->data_length);
      if (m->marker == kExifMarker && data.starts_with(kPrefix)) return {m->data, m->data_length};
    }
    return {};
  }

  const EncodedPicture& file_;
  JpegState state_;
};

struct JpegWriting {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX] = "";
  unsigned char* data = nullptr;  // malloc's
  unsigned long bytes = 0;
};

[[noreturn]] void on_writing_error(j_common_ptr info) {
  auto* state = static_cast<JpegWriting*>(info->client_data);
  info->err->format_message(info, state->message);
  std::longjmp(state->back, 1);
}

bool write_rows(JpegWriting* state, const Picture* picture, int quality) noexcept {
  if (setjmp(state->back) != 0) return false;
  jpeg_create_compress(&state->info);
  jpeg_mem_dest(&state->info, &state->data, &state->bytes);
  state->info.image_width = picture->width;
  state->info.image_height = picture->height;
  state->info.input_components = 3;
  state->info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&state->info);
  jpeg_set_quality(&state->info, quality, TRUE);
  jpeg_start_compress(&state->info, TRUE);
  while (state->info.next_scanline < picture->height) {
    auto* row = const_cast<JSAMPLE*>(picture->pixels.data()) +
                std::size_t{3} * picture->width * state->info.next_scanline;
    jpeg_write_scanlines(&state->info, &row, 1);
  }
  jpeg_finish_compress(&state->info);
  return true;
}

}  // namespace

std::string write_jpeg(const Picture& picture, int quality) {
  JpegWriting state;
  state.info.err = jpeg_std_error(&state.errors);
  state.info.client_data = &state;
  state.errors.error_exit = &on_writing_error;
  const bool is_written = write_rows(&state, &picture, quality);
  jpeg_destroy_compress(&state.info);
  const std::unique_ptr<unsigned char, decltype(&std::free)> data(state.data, &std::free);
  if (!is_written)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string("The picture cannot be written as a JPEG: ") + state.message + ".");
  return {reinterpret_cast<const char*>(data.get()), state.bytes};
}

std::vector<Frame> read_jpeg(const EncodedPicture& file) {
  std::vector<Frame> frames;
  frames.push_back(JpegReader(file).read());
  return frames;
}

}  // namespace heddle::image
