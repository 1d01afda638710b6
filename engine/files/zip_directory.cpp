#include "engine/files/zip_directory.h"

#include <algorithm>
#include <cstring>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

// PKWARE's APPNOTE.TXT, sections 4.3.7 (local header), 4.3.12 (directory), 4.3.14 to 4.3.16 (its
// end), 4.5.3 (sizes of 64 bits). All numbers are little-endian.
constexpr std::uint32_t kZipLocal = 0x04034b50, kZipCentral = 0x02014b50, kZipEnd = 0x06054b50;
constexpr std::uint32_t kZipLocator64 = 0x07064b50, kZip64End = 0x06064b50;
constexpr std::uint64_t kZipLocalBytes = 30, kZipCentralBytes = 46, kZipEndBytes = 22,
                        kZipLocatorBytes = 20, kZip64EndBytes = 56;
constexpr std::uint32_t kZipIs64 = 0xffffffff;
constexpr std::uint64_t kZipLongestComment = 0xffff;
constexpr std::string_view kZipDamaged =
    " The file is damaged or its download is incomplete; fetch it again.";

class ZipReader {
 public:
  ZipReader(std::span<const std::byte> file, std::string_view file_name)
      : file_(file), file_name_(file_name) {}

  std::vector<ZipEntry> read() {
    find_directory();
    for (std::uint64_t i = 0; i < count_; ++i) read_entry();
    check_overlaps();
    std::sort(entries_.begin(), entries_.end(),
              [](const ZipEntry& a, const ZipEntry& b) { return a.name < b.name; });
    const auto twice =
        std::adjacent_find(entries_.begin(), entries_.end(),
                           [](const auto& a, const auto& b) { return a.name == b.name; });
    if (twice != entries_.end())
      throw refuse(cat("the entry ", quote(twice->name), " is there twice.", kZipDamaged));
    return std::move(entries_);
  }

 private:
  Error refuse(std::string_view what) const {
    return Error(Code::invalid_argument, cat(file_name_, ": ", what));
  }

  void need(std::uint64_t at, std::uint64_t bytes, std::string_view what) const {
    if (at <= file_.size() && bytes <= file_.size() - at) return;
    throw refuse(cat(what, " is to have ", bytes, " bytes from byte ", at, " on, but the file has ",
                     file_.size(), " bytes.", kZipDamaged));
  }

  template <class T>
  T number(std::uint64_t at) const {  // REQUIRES: need()
    T value;
    std::memcpy(&value, file_.data() + at, sizeof value);
    return value;
  }

  void find_directory() {
    if (file_.size() < kZipEndBytes)
      throw refuse(cat("the zip file has only ", file_.size(), " bytes.", kZipDamaged));
    const std::uint64_t last = file_.size() - kZipEndBytes;
    const std::uint64_t first = last - std::min(last, kZipLongestComment);
    std::uint64_t end = last;
    while (number<std::uint32_t>(end) != kZipEnd) {
      if (end == first) throw refuse(cat("the zip file has no directory at its end.", kZipDamaged));
      --end;
    }
    count_ = number<std::uint16_t>(end + 10);
    at_ = number<std::uint32_t>(end + 16);
    if (end < kZipLocatorBytes || number<std::uint32_t>(end - kZipLocatorBytes) != kZipLocator64)
      return;
    const auto end64 = number<std::uint64_t>(end - kZipLocatorBytes + 8);
    need(end64, kZip64EndBytes, "the end of the zip64 directory");
    if (number<std::uint32_t>(end64) != kZip64End)
      throw refuse(cat("there is no zip64 directory at byte ", end64, ".", kZipDamaged));
    count_ = number<std::uint64_t>(end64 + 32);
    at_ = number<std::uint64_t>(end64 + 48);
  }

  std::string_view text(std::uint64_t at, std::uint64_t bytes) const {
    return {reinterpret_cast<const char*>(file_.data()) + at, bytes};
  }

  void read_entry() {
    need(at_, kZipCentralBytes, "an entry of the zip directory");
    if (number<std::uint32_t>(at_) != kZipCentral)
      throw refuse(cat("the zip directory has no entry at byte ", at_, ".", kZipDamaged));
    const auto flags = number<std::uint16_t>(at_ + 8), method = number<std::uint16_t>(at_ + 10);
    std::uint64_t packed = number<std::uint32_t>(at_ + 20), size = number<std::uint32_t>(at_ + 24);
    const std::uint64_t name_bytes = number<std::uint16_t>(at_ + 28),
                        extra_bytes = number<std::uint16_t>(at_ + 30),
                        comment_bytes = number<std::uint16_t>(at_ + 32);
    std::uint64_t header = number<std::uint32_t>(at_ + 42);
    need(at_ + kZipCentralBytes, name_bytes + extra_bytes + comment_bytes,
         "an entry of the zip directory");
    const std::string_view name = text(at_ + kZipCentralBytes, name_bytes);
    read_sizes64(at_ + kZipCentralBytes + name_bytes, extra_bytes, {&size, &packed, &header});
    at_ += kZipCentralBytes + name_bytes + extra_bytes + comment_bytes;
    const bool is_plain = method == 0 && (flags & 1) == 0;
    if (is_plain && packed != size)
      throw refuse(cat("the zip entry ", quote(name), " of ", size, " bytes is stored in ", packed,
                       ".", kZipDamaged));
    entries_.push_back({.name = name,
                        .offset = data_offset(name, header, packed),
                        .size = packed,
                        .is_plain = is_plain});
  }

  // Those of the numbers that are too large for 32 bits stand in the extra field 1, in this order.
  void read_sizes64(std::uint64_t at, std::uint64_t bytes,
                    std::initializer_list<std::uint64_t*> numbers) const {
    const std::uint64_t end = at + bytes;
    while (end - at >= 4) {
      const auto id = number<std::uint16_t>(at);
      const std::uint64_t length = number<std::uint16_t>(at + 2);
      at += 4;
      if (length > end - at)
        throw refuse(cat("an extra field of the zip directory passes its end.", kZipDamaged));
      if (id == 1) {
        const std::uint64_t field_end = at + length;
        for (std::uint64_t* value : numbers) {
          if (*value != kZipIs64 || field_end - at < sizeof *value) continue;
          *value = number<std::uint64_t>(at);
          at += sizeof *value;
        }
        return;
      }
      at += length;
    }
  }

  std::uint64_t data_offset(std::string_view name, std::uint64_t header, std::uint64_t size) const {
    const std::string what = cat("the zip entry ", quote(name));
    need(header, kZipLocalBytes, what);
    if (number<std::uint32_t>(header) != kZipLocal)
      throw refuse(cat(what, " does not begin at byte ", header, ".", kZipDamaged));
    const std::uint64_t offset = header + kZipLocalBytes + number<std::uint16_t>(header + 26) +
                                 number<std::uint16_t>(header + 28);
    need(offset, size, what);
    return offset;
  }

  void check_overlaps() {
    std::sort(entries_.begin(), entries_.end(), [](const ZipEntry& a, const ZipEntry& b) {
      return a.offset != b.offset ? a.offset < b.offset : a.size < b.size;
    });
    std::uint64_t covered = 0;
    for (const ZipEntry& entry : entries_) {
      if (entry.offset < covered)
        throw refuse(cat("the zip entry ", quote(entry.name), " at byte ", entry.offset,
                         " overlaps the one before, which ends at ", covered, ".", kZipDamaged));
      covered = entry.offset + entry.size;
    }
  }

  std::span<const std::byte> file_;
  std::string_view file_name_;
  std::uint64_t count_ = 0;  // of entries
  std::uint64_t at_ = 0;     // in the directory
  std::vector<ZipEntry> entries_;
};

}  // namespace

bool is_zip(std::span<const std::byte> file) {
  constexpr std::uint32_t kStart = kZipLocal;
  return file.size() >= sizeof kStart && std::memcmp(file.data(), &kStart, sizeof kStart) == 0;
}

std::vector<ZipEntry> read_zip_directory(std::span<const std::byte> file,
                                         std::string_view file_name) {
  return ZipReader(file, file_name).read();
}

}  // namespace heddle::engine
