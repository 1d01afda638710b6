#include "plugins/image/png.h"

#include <png.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>

// libpng reports errors by longjmp. Between setjmp and the calls that may jump there must be
// nothing with a destructor: such code stands in small noexcept functions over plain structs, and
// everything that owns memory lives in their callers.

namespace heddle::image {
namespace {

constexpr std::size_t kMostMessage = 200;      // bytes kept of libpng's message
constexpr std::uint64_t kDeflateRatio = 1032;  // bytes that one compressed byte can make at most
constexpr std::uint32_t kRowsBetweenQuestions = 64;

struct Fault {
  char message[kMostMessage] = "";
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* fault = static_cast<Fault*>(png_get_error_ptr(png));
  std::snprintf(fault->message, sizeof fault->message, "%s", message);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

// ---- reading ----

struct Source {
  const std::uint8_t* next;
  std::size_t left;
};

void take(png_structp png, png_bytep to, png_size_t size) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (size > source->left) png_error(png, "the file ends early");
  std::memcpy(to, source->next, size);
  source->next += size;
  source->left -= size;
}

struct Header {
  png_uint_32 width, height;
  int depth, colour, interlace;
  bool has_transparency;
};

// What a picture needs of the ancillary chunks is tRNS and eXIf. The rest is skipped unread, so
// that no compressed text or profile is ever unpacked.
void skip_the_rest(png_structp png) noexcept {
  static const png_byte names[] =
      "iCCP\0zTXt\0iTXt\0tEXt\0sPLT\0hIST\0pCAL\0sCAL\0cHRM\0gAMA\0sRGB\0tIME";
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, names, sizeof names / 5);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
}

bool read_header(png_structp png, png_infop info, Header* header) noexcept {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
  skip_the_rest(png);
  png_read_info(png, info);
  png_get_IHDR(png, info, &header->width, &header->height, &header->depth, &header->colour,
               &header->interlace, nullptr, nullptr);
  header->has_transparency = png_get_valid(png, info, PNG_INFO_tRNS) != 0;
  return true;
}

bool is_wide_grey(const Header& header) {
  return header.colour == PNG_COLOR_TYPE_GRAY && header.depth == 16;
}

// After this, rows are RGB or RGBA of 8 bits, or 16-bit grey with or without alpha.
bool set_transforms(png_structp png, png_infop info, const Header* header, std::size_t* row_bytes,
                    int* channels) noexcept {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  if (header->colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (header->colour == PNG_COLOR_TYPE_GRAY && header->depth < 8)
    png_set_expand_gray_1_2_4_to_8(png);
  if (header->has_transparency) png_set_tRNS_to_alpha(png);
  if (!is_wide_grey(*header)) {
    png_set_strip_16(png);
    if ((header->colour & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  *row_bytes = png_get_rowbytes(png, info);
  *channels = png_get_channels(png, info);
  return true;
}

bool read_rows(png_structp png, png_infop end, png_bytepp rows) noexcept {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_image(png, rows);
  png_read_end(png, end);
  return true;
}

bool find_exif(png_structp png, png_infop info, png_bytep* bytes, png_uint_32* size) noexcept {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  return png_get_eXIf_1(png, info, size, bytes) != 0;
}

class PngReader {
 public:
  explicit PngReader(const EncodedPicture& file)
      : file_(file), size_(file.bytes.size()), source_{file.bytes.data(), file.bytes.size()} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &fault_, &on_error, &on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (png_ != nullptr) end_ = png_create_info_struct(png_);
    if (end_ == nullptr || info_ == nullptr) {
      png_destroy_read_struct(&png_, &info_, &end_);
      throw std::bad_alloc();
    }
    png_set_read_fn(png_, &source_, &take);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, &end_); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  PngContent read() {
    check_chunks();
    Header header{};
    require(read_header(png_, info_, &header));
    check_size(header);
    std::size_t row_bytes = 0;
    int channels = 0;
    require(set_transforms(png_, info_, &header, &row_bytes, &channels));

    Bytes pixels(row_bytes * header.height, file_.memory);
    std::vector<png_bytep> rows(header.height);
    for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = pixels.data() + y * row_bytes;
    require(read_rows(png_, end_, rows.data()));
    Picture picture{header.width, header.height, static_cast<std::uint32_t>(channels),
                    std::move(pixels)};
    return {is_wide_grey(header) ? narrowed(picture) : std::move(picture), alpha_of(header),
            exif()};
  }

 private:
  void require(bool fine) const {
    if (!fine) refuse(fault_.message);
  }
  [[noreturn]] void refuse(const std::string& why) const { refuse_picture(file_, "PNG", why); }

  // Every chunk up to the last one lies in the file. libpng gives a chunk its memory before it
  // reads it, so a length that lies must not get there.
  void check_chunks() const {
    constexpr std::size_t kSignature = 8, kFrame = 12;  // length, name and checksum of a chunk
    std::size_t at = kSignature;
    while (true) {
      if (size_ - at < kFrame) refuse("the file ends early");
      const std::uint8_t* chunk = source_.next + at;
      const std::size_t length = png_get_uint_32(chunk);
      if (length > size_ - at - kFrame) refuse("the file ends early");
      if (std::memcmp(chunk + 4, "IEND", 4) == 0) return;
      at += kFrame + length;
    }
  }

  void check_size(const Header& header) const {
    check_pixels(file_, header.width, header.height);
    const std::uint64_t pixels = std::uint64_t{header.width} * header.height;
    const unsigned samples = header.colour == PNG_COLOR_TYPE_PALETTE
                                 ? 1u
                                 : 1u + ((header.colour & PNG_COLOR_MASK_COLOR) != 0 ? 2u : 0u) +
                                       ((header.colour & PNG_COLOR_MASK_ALPHA) != 0 ? 1u : 0u);
    const std::uint64_t needed = pixels * samples * static_cast<unsigned>(header.depth) / 8;
    if (needed > size_ * kDeflateRatio)
      refuse("it says " + std::to_string(header.width) + " x " + std::to_string(header.height) +
             " pixels, but " + std::to_string(size_) + " bytes cannot hold them");
  }

  static Alpha alpha_of(const Header& header) {
    if ((header.colour & PNG_COLOR_MASK_ALPHA) != 0) return Alpha::channel;
    if (!header.has_transparency) return Alpha::none;
    return header.colour == PNG_COLOR_TYPE_PALETTE ? Alpha::palette : Alpha::colour_key;
  }

  // 16-bit grey, big-endian, as RGB or RGBA.
  static Picture narrowed(const Picture& wide) {
    const bool has_alpha = wide.channels == 2;
    Picture result{wide.width, wide.height, has_alpha ? 4u : 3u,
                   Bytes(wide.pixels.get_allocator())};
    const std::size_t count = std::size_t{wide.width} * wide.height;
    result.pixels.reserve(count * result.channels);
    const std::uint8_t* from = wide.pixels.data();
    for (std::size_t i = 0; i < count; ++i, from += 2 * wide.channels) {
      const unsigned grey = std::min((from[0] * 256u + from[1]) / 255u, 255u);
      result.pixels.insert(result.pixels.end(), 3, static_cast<std::uint8_t>(grey));
      if (has_alpha) result.pixels.push_back(from[2]);
    }
    return result;
  }

  std::vector<std::uint8_t> exif() {
    for (const png_infop info : {info_, end_}) {
      png_bytep bytes = nullptr;
      png_uint_32 size = 0;
      if (find_exif(png_, info, &bytes, &size)) return {bytes, bytes + size};
    }
    return {};
  }

  const EncodedPicture& file_;
  std::size_t size_;
  Source source_;
  Fault fault_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr, end_ = nullptr;
};

// ---- writing ----

struct Sink {
  Bytes bytes;
  std::exception_ptr failure = nullptr;
};

void put(png_structp png, png_bytep from, png_size_t size) {
  auto* sink = static_cast<Sink*>(png_get_io_ptr(png));
  try {
    sink->bytes.insert(sink->bytes.end(), from, from + size);
  } catch (...) {
    sink->failure = std::current_exception();
  }
  if (sink->failure != nullptr) png_error(png, "out of memory");
}

void flush(png_structp) {}

int colour_type(std::uint32_t channels) {
  constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                            PNG_COLOR_TYPE_RGB_ALPHA};
  return kTypes[channels - 1];
}

struct PngLook {
  int level, depth;
};

bool write_header(png_structp png, png_infop info, const Picture* picture, png_textp texts,
                  int count, PngLook look) noexcept {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
  png_set_compression_level(png, look.level);
  png_set_IHDR(png, info, picture->width, picture->height, look.depth,
               colour_type(picture->channels), PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (count > 0) png_set_text(png, info, texts, count);
  png_write_info(png, info);
  return true;
}

bool write_rows(png_structp png, png_const_bytep rows, std::size_t row_bytes,
                std::uint32_t count) noexcept {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  for (std::uint32_t y = 0; y < count; ++y) png_write_row(png, rows + y * row_bytes);
  return true;
}

bool write_end(png_structp png, png_infop info) noexcept {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_write_end(png, info);
  return true;
}

class PngWriter {
 public:
  explicit PngWriter(const Bytes::allocator_type& memory) : sink_{Bytes(memory)} {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &fault_, &on_error, &on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_write_struct(&png_, &info_);
      throw std::bad_alloc();
    }
    png_set_write_fn(png_, &sink_, &put, &flush);
  }
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

  Bytes write(const Picture& picture, std::span<const TextChunk> texts, PngLook look,
              const std::function<bool()>& cancelled) {
    std::vector<png_text> chunks;
    for (const TextChunk& text : texts) {
      png_text chunk{};
      chunk.compression = PNG_TEXT_COMPRESSION_NONE;
      chunk.key = const_cast<png_charp>(text.key.c_str());
      chunk.text = const_cast<png_charp>(text.text.c_str());
      chunk.text_length = text.text.size();
      chunks.push_back(chunk);
    }
    require(
        write_header(png_, info_, &picture, chunks.data(), static_cast<int>(chunks.size()), look));
    const std::size_t row_bytes =
        std::size_t{picture.width} * picture.channels * std::size_t(look.depth / 8);
    for (std::uint32_t y = 0; y < picture.height; y += kRowsBetweenQuestions) {
      if (cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled while a picture was being written");
      require(write_rows(png_, picture.pixels.data() + y * row_bytes, row_bytes,
                         std::min(kRowsBetweenQuestions, picture.height - y)));
    }
    require(write_end(png_, info_));
    return std::move(sink_.bytes);
  }

 private:
  void require(bool fine) const {
    if (sink_.failure != nullptr) std::rethrow_exception(sink_.failure);
    if (!fine)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  std::string("the picture cannot be written as PNG: ") + fault_.message);
  }

  Sink sink_;
  Fault fault_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

PngContent read_png(const EncodedPicture& file) {
  constexpr std::size_t kSignature = 8;
  if (file.bytes.empty()) throw Error(HEDDLE_INVALID_ARGUMENT, file.name + ": the file is empty.");
  if (png_sig_cmp(file.bytes.data(), 0, std::min(file.bytes.size(), kSignature)) != 0 ||
      file.bytes.size() < kSignature)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.name + ": this is no PNG file.");
  return PngReader(file).read();
}

bool is_png_key(const std::string& key) {
  if (key.empty() || key.size() > 79 || key.front() == ' ' || key.back() == ' ') return false;
  if (key.find("  ") != std::string::npos) return false;
  return std::all_of(key.begin(), key.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

Bytes write_png(const Picture& picture, std::span<const TextChunk> texts, int level,
                const std::function<bool()>& cancelled, int depth) {
  return PngWriter(picture.pixels.get_allocator()).write(picture, texts, {level, depth}, cancelled);
}

}  // namespace heddle::image
