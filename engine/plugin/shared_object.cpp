#include "engine/plugin/shared_object.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

namespace {

constexpr unsigned char kClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
constexpr unsigned char kByteOrder =
    std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#else
constexpr std::uint16_t kMachine = EM_NONE;  // the loader compares it
#endif

class SharedObject {
 public:
  explicit SharedObject(const std::filesystem::path& path)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    if (file_ < 0) throw system_error(path.string(), errno);
  }
  ~SharedObject() { ::close(file_); }
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  void check() {
    struct stat status {};
    if (::fstat(file_, &status) != 0) throw system_error(path_.string(), errno);
    if (!S_ISREG(status.st_mode))
      refuse(cat("it is ", S_ISDIR(status.st_mode) ? "a folder" : "a pipe, socket or device"));
    size_ = std::uint64_t(status.st_size);
    check_kind();
    check_segments();
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(Code::invalid_argument,
                cat(path_.string(), " cannot be loaded as a plugin: ", why));
  }
  [[noreturn]] void refuse_cut(std::uint64_t wanted) const {
    refuse(cat("the file is cut off: it has ", size_, " bytes, by its headers at least ", wanted,
               ". Build or copy it again"));
  }

  void check_kind() {
    unsigned char ident[EI_NIDENT] = {};
    const std::uint64_t there = std::min<std::uint64_t>(size_, sizeof ident);
    read(0, std::as_writable_bytes(std::span(ident).first(there)));
    if (there < SELFMAG || std::memcmp(ident, ELFMAG, SELFMAG) != 0)
      refuse("it is not a shared object (an ELF file)");
    if (size_ < sizeof header_) refuse_cut(sizeof header_);
    read(0, std::as_writable_bytes(std::span(&header_, 1)));
    if (ident[EI_CLASS] != kClass || ident[EI_DATA] != kByteOrder ||
        (kMachine != EM_NONE && header_.e_machine != kMachine))
      refuse(cat("it was built for another machine (ELF machine ", header_.e_machine, ", ",
                 ident[EI_CLASS] == ELFCLASS64 ? 64 : 32, " bits)"));
    if (header_.e_type != ET_DYN)
      refuse(cat("it is an ELF file of the type ", header_.e_type,
                 ", not a shared object. Link it with -shared"));
  }

  void check_segments() {
    if (header_.e_phnum == 0 || header_.e_phentsize != sizeof(ElfW(Phdr)))
      refuse("its program headers are damaged");
    std::vector<ElfW(Phdr)> segments(header_.e_phnum);
    check_range(header_.e_phoff, segments.size() * sizeof(ElfW(Phdr)));
    read(header_.e_phoff, std::as_writable_bytes(std::span(segments)));
    for (const ElfW(Phdr) & segment : segments)
      if (segment.p_type == PT_LOAD || segment.p_type == PT_DYNAMIC)
        check_range(segment.p_offset, segment.p_filesz);
  }

  void check_range(std::uint64_t offset, std::uint64_t bytes) const {
    std::uint64_t end = 0;
    if (__builtin_add_overflow(offset, bytes, &end)) refuse("its program headers are damaged");
    if (end > size_) refuse_cut(end);
  }

  void read(std::uint64_t offset, std::span<std::byte> into) const {
    while (!into.empty()) {
      const ssize_t got = ::pread(file_, into.data(), into.size(), off_t(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw system_error(path_.string(), errno);
      if (got == 0) refuse("the file became shorter while it was read");
      into = into.subspan(std::size_t(got));
      offset += std::uint64_t(got);
    }
  }

  const std::filesystem::path& path_;
  const int file_;
  std::uint64_t size_ = 0;
  ElfW(Ehdr) header_{};
};

}  // namespace

void check_shared_object(const std::filesystem::path& path) { SharedObject(path).check(); }

}  // namespace heddle::engine
