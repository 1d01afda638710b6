#include "engine/facade/random_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <numbers>
#include <random>
#include <set>
#include <thread>

#include "engine/base/error.h"
#include "engine/base/folder.h"
#include "engine/base/hash.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/memory/machine_memory.h"

namespace heddle {

namespace {

namespace fs = std::filesystem;
using engine::cat;

constexpr const char* kFolderName = "heddle-bench-";
constexpr std::uint64_t kSpare = 64 << 20;  // bytes beside the tensors that have to be left

// A prime, so that rows of no matrix begin at the same place again and again.
constexpr std::size_t kPool = 4'194'301;
constexpr std::size_t kPiece = 1 << 20;  // elements that a thread makes at a time

// Standard normal numbers, by Box and Muller. mt19937 is the same everywhere, the distributions of
// the standard library are not.
std::vector<float> make_pool() {
  std::vector<float> pool(kPool + 1);
  std::mt19937 engine(20240801);
  const auto uniform = [&] { return (double(engine()) + 0.5) * 0x1p-32; };
  for (std::size_t i = 0; i < kPool; i += 2) {
    const double radius = std::sqrt(-2 * std::log(uniform())),
                 angle = 2 * std::numbers::pi * uniform();
    pool[i] = float(radius * std::cos(angle));
    pool[i + 1] = float(radius * std::sin(angle));
  }
  pool.resize(kPool);
  return pool;
}

std::uint16_t bf16_of(float value) {  // to the nearest, ties to even
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return std::uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

struct Place {
  const RandomTensor* tensor;
  std::uint64_t offset;  // in its file
};

struct File {
  int descriptor = -1;
  std::vector<Place> places;
};

void write_all(int file, const void* data, std::size_t bytes, std::uint64_t offset,
               const std::string& name) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::pwrite(file, from, bytes, off_t(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw engine::system_error(name, written < 0 ? errno : ENOSPC);
    from += written;
    bytes -= std::size_t(written);
    offset += std::uint64_t(written);
  }
}

std::int64_t count_of(const RandomTensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  return count;
}

// A piece of a tensor: its numbers are some of the pool, from a place that its name decides.
void write_piece(int file, const Place& place, std::size_t begin, const std::vector<float>& pool,
                 std::vector<char>& buffer) {
  const RandomTensor& tensor = *place.tensor;
  const std::size_t count = std::min(kPiece, std::size_t(count_of(tensor)) - begin);
  const float mean = float(tensor.mean), deviation = float(tensor.deviation);
  std::size_t at =
      std::size_t((engine::Hasher().add(tensor.name).finish().lo + begin) % pool.size());
  const auto fill = [&](auto* to, auto convert) {
    for (std::size_t done = 0; done < count;) {
      const std::size_t run = std::min(count - done, pool.size() - at);
      const float* const from = pool.data() + at;
      for (std::size_t i = 0; i < run; ++i) to[done + i] = convert(from[i] * deviation + mean);
      done += run;
      at = (at + run) % pool.size();
    }
    write_all(file, to, count * sizeof *to, place.offset + begin * sizeof *to, tensor.file);
  };
  if (tensor.dtype == engine::DType::bf16)
    fill(reinterpret_cast<std::uint16_t*>(buffer.data()),
         [](float value) { return bf16_of(value); });
  else if (tensor.dtype == engine::DType::i8)
    fill(reinterpret_cast<std::int8_t*>(buffer.data()), [](float value) {
      return std::int8_t(std::nearbyint(std::clamp(value, -127.0f, 127.0f)));
    });
  else
    fill(reinterpret_cast<float*>(buffer.data()), [](float value) { return value; });
}

// By as many threads as there are processors; what the first of them throws.
void write_numbers(const std::map<std::string, File>& files) {
  struct Piece {
    int file;
    const Place* place;
    std::size_t begin;
  };
  std::vector<Piece> pieces;
  for (const auto& [name, file] : files)
    for (const Place& place : file.places)
      for (std::size_t begin = 0; begin < std::size_t(count_of(*place.tensor)); begin += kPiece)
        pieces.push_back({file.descriptor, &place, begin});
  static const std::vector<float> pool = make_pool();  // drawing it takes longer than a small model
  std::atomic<std::size_t> next = 0;
  const std::size_t workers = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 16);
  std::vector<std::exception_ptr> failures(workers);
  const auto work = [&](std::size_t t) noexcept {
    try {
      std::vector<char> buffer(kPiece * sizeof(float));
      for (std::size_t p = next++; p < pieces.size(); p = next++)
        write_piece(pieces[p].file, *pieces[p].place, pieces[p].begin, pool, buffer);
    } catch (...) {
      failures[t] = std::current_exception();
      next = pieces.size();
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t t = 1; t < workers; ++t) threads.emplace_back(work, t);
    } catch (const std::system_error&) {
      // No more threads are to be had: those there are do the work.
    }
    work(0);
  }
  for (const std::exception_ptr& failure : failures)
    if (failure != nullptr) std::rethrow_exception(failure);
}

const char* stored_type(const RandomTensor& tensor) {
  return tensor.dtype == engine::DType::bf16 ? "BF16"
         : tensor.dtype == engine::DType::i8 ? "I8"
                                             : "F32";
}

// What a file says of its quantised matrices, as ComfyUI reads it; "": nothing.
std::string quantisation_of(const std::vector<Place>& places) {
  constexpr std::string_view kWeight = ".weight";
  engine::Json layers = engine::Json::object();
  for (const Place& place : places) {
    const std::string& name = place.tensor->name;
    if (!place.tensor->is_rotated || !name.ends_with(kWeight)) continue;
    engine::Json layer = engine::Json::object();
    layer.set("format", "int8_tensorwise").set("convrot", true).set("convrot_groupsize", 256);
    layers.set(name.substr(0, name.size() - kWeight.size()), std::move(layer));
  }
  if (layers.members().empty()) return "";
  engine::Json all = engine::Json::object();
  all.set("format_version", "1.0").set("layers", std::move(layers));
  return engine::write_json(all);
}

// The header of a safetensors file, and where its tensors go.
std::string header_of(std::vector<Place>& places) {
  engine::Json header = engine::Json::object();
  if (const std::string told = quantisation_of(places); !told.empty()) {
    engine::Json metadata = engine::Json::object();
    metadata.set("_quantization_metadata", told);
    header.set("__metadata__", std::move(metadata));
  }
  std::uint64_t offset = 0;
  for (Place& place : places) {
    engine::Json shape = engine::Json::array(), range = engine::Json::array();
    for (const std::int64_t size : place.tensor->shape) shape.push(size);
    place.offset = offset;
    range.push(offset);
    offset += place.tensor->bytes();
    range.push(offset);
    engine::Json entry = engine::Json::object();
    entry.set("dtype", stored_type(*place.tensor))
        .set("shape", std::move(shape))
        .set("data_offsets", std::move(range));
    header.set(place.tensor->name, std::move(entry));
  }
  std::string text = engine::write_json(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the numbers are aligned
  for (Place& place : places) place.offset += 8 + text.size();
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8)
    bytes += char(std::uint64_t(text.size()) >> shift & 0xff);
  return bytes + text;
}

std::uint64_t free_bytes(const fs::path& folder) {
  struct statvfs room {};
  return ::statvfs(folder.c_str(), &room) == 0 ? std::uint64_t(room.f_bavail) * room.f_frsize : 0;
}

// What processes that were killed have left there.
void remove_orphans(const fs::path& folder) {
  std::error_code ignored;
  for (const engine::FolderEntry& entry : engine::entries_of(folder, ignored)) {
    const std::string name = entry.name();
    if (!name.starts_with(kFolderName)) continue;
    const int process = std::atoi(name.c_str() + std::strlen(kFolderName));
    if (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH)
      fs::remove_all(entry.path, ignored);
  }
}

fs::path make_folder(std::uint64_t bytes) {
  std::error_code ignored;
  const fs::path memory = "/dev/shm", disk = fs::temp_directory_path(ignored);
  for (const fs::path& folder : {memory, disk})
    if (!folder.empty()) remove_orphans(folder);
  const std::uint64_t wanted = bytes + kSpare;
  // The model needs its place in memory, too.
  const bool has_memory =
      free_bytes(memory) >= wanted && engine::machine_memory().free / 2 >= wanted;
  const fs::path& base = has_memory ? memory : disk;
  if (!has_memory && (disk.empty() || free_bytes(disk) < wanted))
    throw engine::Error(
        engine::Code::out_of_memory,
        cat("random weights of ", engine::format_bytes(bytes), " find no room: ", memory.string(),
            " has ", engine::format_bytes(free_bytes(memory)), ", ",
            engine::format_bytes(engine::machine_memory().free),
            " of memory are free, half of which may be used, and ",
            disk.empty() ? std::string("there is no folder for temporary files")
                         : cat(disk.string(), " has ", engine::format_bytes(free_bytes(disk))),
            ". Set TMPDIR to a folder with room"));
  std::string folder = (base / cat(kFolderName, ::getpid(), "-XXXXXX")).string();
  if (::mkdtemp(folder.data()) == nullptr) throw engine::system_error(folder, errno);
  return folder;
}

void check(const std::vector<RandomTensor>& tensors) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const RandomTensor& tensor : tensors) {
    const fs::path path(tensor.file);
    const bool leaves = path.is_absolute() || std::ranges::find(path, fs::path("..")) != path.end();
    const bool is_known = tensor.dtype == engine::DType::bf16 ||
                          tensor.dtype == engine::DType::f32 || tensor.dtype == engine::DType::i8;
    if (leaves || path.empty() || !is_known ||
        std::ranges::any_of(tensor.shape, [](std::int64_t size) { return size <= 0; }))
      throw engine::Error(
          engine::Code::invalid_argument,
          cat("tensor ", engine::quote(tensor.name), " of ", engine::quote(tensor.file),
              " cannot be drawn: its file has to be a relative name, its type f32, "
              "bf16 or i8, its sizes above 0"));
    if (!seen.emplace(tensor.file, tensor.name).second)
      throw engine::Error(engine::Code::invalid_argument,
                          cat("tensor ", engine::quote(tensor.name), " of ",
                              engine::quote(tensor.file), " is there twice"));
  }
}

}  // namespace

std::uint64_t RandomTensor::bytes() const {
  return std::uint64_t(count_of(*this)) * engine::dtype_size(dtype);
}

RandomFiles::RandomFiles(const std::vector<RandomTensor>& tensors) {
  check(tensors);
  std::map<std::string, File> files;
  for (const RandomTensor& tensor : tensors) {
    files[tensor.file].places.push_back({&tensor, 0});
    bytes_ += tensor.bytes();
  }
  folder_ = make_folder(bytes_);
  const auto close = [&] {
    for (auto& [name, file] : files)
      if (file.descriptor >= 0) ::close(file.descriptor);
  };
  try {
    for (auto& [name, file] : files) {
      const fs::path path = folder_ / name;
      fs::create_directories(path.parent_path());
      file.descriptor = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
      if (file.descriptor < 0) throw engine::system_error(path.string(), errno);
      const std::string header = header_of(file.places);
      write_all(file.descriptor, header.data(), header.size(), 0, path.string());
    }
    write_numbers(files);
    close();
  } catch (...) {
    close();
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    throw;
  }
}

RandomFiles::~RandomFiles() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace heddle
