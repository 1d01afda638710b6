#include "engine/files/gguf.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::string_view kOriginalShape = "comfy.gguf.orig_shape.";
constexpr std::uint64_t kLongestText = 1 << 20;  // of a key or of a tensor's name, bytes
// Far above that of a vocabulary. Texts are copied, and each member of an array is looked at.
constexpr std::uint64_t kLongestHeader = 128 << 20;
constexpr std::uint32_t kMostAxes = 4;     // as ggml has them
constexpr std::uint64_t kMostListed = 16;  // members of an array that is kept
constexpr std::string_view kCutOff = " The download is probably incomplete; fetch the file again.";
constexpr std::string_view kFaulty =
    " The file is damaged or was written by a faulty program; fetch or convert it again.";

struct GgmlType {
  std::string_view name;
  std::optional<DType> dtype;  // absent: not read here
};

// By ggml's numbers; gaps are formats that were withdrawn.
constexpr std::array<GgmlType, 40> kGgmlTypes = {{
    {"F32", DType::f32},   {"F16", DType::f16},   {"Q4_0", DType::q4_0}, {"Q4_1", DType::q4_1},
    {"Q4_2", {}},          {"Q4_3", {}},          {"Q5_0", DType::q5_0}, {"Q5_1", DType::q5_1},
    {"Q8_0", DType::q8_0}, {"Q8_1", {}},          {"Q2_K", {}},          {"Q3_K", {}},
    {"Q4_K", DType::q4_k}, {"Q5_K", DType::q5_k}, {"Q6_K", DType::q6_k}, {"Q8_K", {}},
    {"IQ2_XXS", {}},       {"IQ2_XS", {}},        {"IQ3_XXS", {}},       {"IQ1_S", {}},
    {"IQ4_NL", {}},        {"IQ3_S", {}},         {"IQ2_S", {}},         {"IQ4_XS", {}},
    {"I8", DType::i8},     {"I16", DType::i16},   {"I32", DType::i32},   {"I64", DType::i64},
    {"F64", DType::f64},   {"IQ1_M", {}},         {"BF16", DType::bf16}, {"Q4_0_4_4", {}},
    {"Q4_0_4_8", {}},      {"Q4_0_8_8", {}},      {"TQ1_0", {}},         {"TQ2_0", {}},
    {"IQ4_NL_4_4", {}},    {"IQ4_NL_4_8", {}},    {"IQ4_NL_8_8", {}},    {"MXFP4", {}},
}};

enum class EntryKind : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  text,
  array,
  u64,
  i64,
  f64
};
constexpr std::uint32_t kKinds = 13;

// Bytes of a value of fixed size; 0 for texts and arrays.
constexpr std::uint64_t kKindBytes[kKinds] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

class GgufReader {
 public:
  GgufReader(std::span<const std::byte> file, std::string_view file_name)
      : file_(file), file_name_(file_name) {}

  GgufHeader read() {
    if (!is_gguf(file_)) throw refuse("the file does not begin with 'GGUF': it is no gguf file.");
    at_ = kMagic.size();
    what_ = "its first numbers";
    const auto version = take<std::uint32_t>();
    if (version != 2 && version != 3) refuse_version(version);
    const auto tensors = take<std::uint64_t>(), entries = take<std::uint64_t>();
    for (std::uint64_t i = 0; i < entries; ++i) read_entry(i);
    for (std::uint64_t i = 0; i < tensors; ++i) read_tensor(i);
    place_data();
    return std::move(header_);
  }

 private:
  Error refuse(std::string_view what) const {
    return Error(Code::invalid_argument, cat(file_name_, ": ", what));
  }
  Error refuse_tensor(std::string_view name, std::string_view what) const {
    return refuse(cat("tensor ", quote(name), ": ", what));
  }

  [[noreturn]] void refuse_version(std::uint32_t version) const {
    const bool other_order = version == 0x02000000u || version == 0x03000000u;
    throw Error(
        Code::unsupported,
        cat(file_name_, ": ",
            other_order ? std::string("the file is big-endian.")
                        : cat("version ", version, " of gguf is not known here, only 2 and 3."),
            " Convert it again with today's tools."));
  }

  std::span<const std::byte> take_bytes(std::uint64_t size) {
    if (size > file_.size() - at_) {
      throw refuse(cat("the header ends at byte ", at_, " of the file's ", file_.size(), " inside ",
                       what_, ", which wants ", size, " more bytes.", kCutOff));
    }
    if (size > kLongestHeader - std::min(at_, kLongestHeader))
      throw refuse(cat("the header ends beyond byte ", kLongestHeader, ", inside ", what_,
                       ", which wants ", size, " bytes.", kFaulty));
    const auto bytes = file_.subspan(at_, size);
    at_ += size;
    return bytes;
  }

  template <class T>
  T take() {
    T value;
    std::memcpy(&value, take_bytes(sizeof value).data(), sizeof value);
    return value;
  }

  std::string_view take_text() {
    const auto size = take<std::uint64_t>();
    const auto bytes = take_bytes(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::string_view take_name(std::string_view of) {
    const std::string_view name = take_text();
    if (name.empty() || name.size() > kLongestText || name.find('\0') != name.npos)
      throw refuse(cat("the name of ", of, " has ", name.size(),
                       " bytes or a zero among them; 1 to ", kLongestText, " are possible.",
                       kFaulty));
    return name;
  }

  // ---- entries ----

  EntryKind take_kind() {
    const auto number = take<std::uint32_t>();
    if (number >= kKinds)
      throw refuse(
          cat(what_, " is of the type ", number, "; known are 0 to ", kKinds - 1, ".", kFaulty));
    return EntryKind(number);
  }

  std::string take_scalar(EntryKind kind) {
    switch (kind) {
      case EntryKind::u8:
        return cat(take<std::uint8_t>());
      case EntryKind::i8:
        return cat(take<std::int8_t>());
      case EntryKind::u16:
        return cat(take<std::uint16_t>());
      case EntryKind::i16:
        return cat(take<std::int16_t>());
      case EntryKind::u32:
        return cat(take<std::uint32_t>());
      case EntryKind::i32:
        return cat(take<std::int32_t>());
      case EntryKind::f32:
        return cat(take<float>());
      case EntryKind::boolean:
        return take<std::uint8_t>() != 0 ? "true" : "false";
      case EntryKind::text:
        return std::string(take_text());
      case EntryKind::u64:
        return cat(take<std::uint64_t>());
      case EntryKind::i64:
        return cat(take<std::int64_t>());
      case EntryKind::f64:
        return cat(take<double>());
      case EntryKind::array:
        break;
    }
    throw refuse(cat(what_, " is an array of arrays, which has no meaning here.", kFaulty));
  }

  // The members as text, when they are few numbers.
  std::optional<std::string> take_array() {
    const EntryKind kind = take_kind();
    const auto count = take<std::uint64_t>();
    const std::uint64_t bytes = kKindBytes[std::uint32_t(kind)];
    if (bytes == 0 || count > kMostListed) {
      if (bytes == 0) {
        for (std::uint64_t i = 0; i < count; ++i) take_scalar(kind);
      } else if (count > (file_.size() - at_) / bytes) {
        throw refuse(cat(what_, " claims ", count, " members of ", bytes,
                         " bytes, but the file has only ", file_.size() - at_, " bytes left.",
                         kCutOff));
      } else {
        take_bytes(count * bytes);
      }
      return std::nullopt;
    }
    std::vector<std::string> members;
    for (std::uint64_t i = 0; i < count; ++i) members.push_back(take_scalar(kind));
    return cat("[", join(members, ", "), "]");
  }

  void read_entry(std::uint64_t number) {
    what_ = cat("metadata entry ", number);
    const std::string key(take_name(what_));
    what_ = cat("the metadata entry ", quote(key));
    const auto [at, is_new] = entries_.try_emplace(key);
    if (!is_new) throw refuse(cat(what_, " is given more than once.", kFaulty));
    const EntryKind kind = take_kind();
    std::optional<std::string> text = kind == EntryKind::array ? take_array() : take_scalar(kind);
    if (!text) return;
    at->second = *text;
    header_.metadata.emplace_back(key, std::move(*text));
  }

  // ---- tensors ----

  void read_tensor(std::uint64_t number) {
    what_ = cat("the description of tensor ", number);
    TensorEntry tensor{.name = std::string(take_name(cat("tensor ", number)))};
    what_ = cat("the description of tensor ", quote(tensor.name));
    const auto axes = take<std::uint32_t>();
    if (axes > kMostAxes)
      throw refuse_tensor(tensor.name, cat("it has ", axes, " axes, at most ", kMostAxes,
                                           " are possible.", kFaulty));
    for (std::uint32_t axis = 0; axis < axes; ++axis) {
      const auto size = take<std::uint64_t>();
      if (size > std::uint64_t(std::numeric_limits<std::int64_t>::max()))
        throw refuse_tensor(tensor.name, cat("axis ", axis, " has the size ", size, ".", kFaulty));
      tensor.shape.insert(tensor.shape.begin(), std::int64_t(size));  // innermost first in the file
    }
    tensor.dtype = take_type(tensor.name);
    tensor.offset = take<std::uint64_t>();
    tensor.size = size_of(tensor);
    restore_shape(tensor);
    header_.tensors.push_back(std::move(tensor));
  }

  DType take_type(std::string_view name) {
    const auto number = take<std::uint32_t>();
    if (number < kGgmlTypes.size() && kGgmlTypes[number].dtype) return *kGgmlTypes[number].dtype;
    const std::string type =
        number < kGgmlTypes.size() ? std::string(kGgmlTypes[number].name) : cat("number ", number);
    throw Error(Code::unsupported, cat(file_name_, ": tensor ", quote(name), ": the type ", type,
                                       " is not read here. Use a file of Q8_0, Q6_K, Q5_K, Q5_1, "
                                       "Q5_0, Q4_K, Q4_1, Q4_0, BF16, F16 or F32."));
  }

  std::uint64_t size_of(const TensorEntry& tensor) const {
    const DTypeBlock block = dtype_block(tensor.dtype);
    const auto refuse_shape = [&](const auto&... why) {
      return refuse_tensor(tensor.name, cat("the shape (", join(tensor.shape, ", "), ") of ",
                                            dtype_name(tensor.dtype), " ", why..., ".", kFaulty));
    };
    constexpr std::uint64_t kMost =
        std::numeric_limits<std::uint32_t>::max() * std::uint64_t(1 << 20);
    std::uint64_t count = 1, others = 1;  // others: as if no axis were empty
    for (const std::int64_t size : tensor.shape) {
      const auto least = std::uint64_t(std::max<std::int64_t>(size, 1));
      if (others > kMost / least) throw refuse_shape("has more than 2^52 elements");
      others *= least;
      count *= std::uint64_t(size);
    }
    if (block.elements > 1 && (tensor.shape.empty() || tensor.shape.back() % block.elements != 0))
      throw refuse_shape("has no whole blocks of ", block.elements,
                         " elements along its innermost axis");
    return count / std::uint64_t(block.elements) * std::uint64_t(block.bytes);
  }

  static bool hold_as_many(const std::vector<std::int64_t>& one,
                           const std::vector<std::int64_t>& other) {
    std::int64_t wanted = 1, count = 1;  // size_of() has seen the other
    for (const std::int64_t size : other) wanted *= size;
    for (const std::int64_t size : one) {
      if (size > wanted / count) return false;
      count *= size;
    }
    return count == wanted;
  }

  // A tensor that ggml has no room for (five axes, or rows that are no whole blocks) is stored in
  // another shape; an entry says which one it has. Its blocks stay where they are: stored_rows.h
  // says where rows are then.
  void restore_shape(TensorEntry& tensor) const {
    const auto found = entries_.find(cat(kOriginalShape, tensor.name));
    if (found == entries_.end()) return;
    std::vector<std::int64_t> shape;
    const std::string& text = found->second;
    const char *at = text.data() + 1, *const end = text.data() + text.size();
    while (text.size() > 2 && at < end) {
      std::int64_t size = 0;
      const auto [stop, error] = std::from_chars(at, end, size);
      if (error != std::errc() || size <= 0) {
        shape.clear();
        break;
      }
      shape.push_back(size);
      at = stop + 2;  // ", " or "]"
    }
    const bool fits = !shape.empty() && shape.size() <= 8 && hold_as_many(shape, tensor.shape);
    if (!fits)
      throw refuse_tensor(tensor.name, cat("its original shape is given as ", quote(text),
                                           ", which does not fit (", join(tensor.shape, ", "),
                                           ") of ", dtype_name(tensor.dtype), ".", kFaulty));
    tensor.shape = std::move(shape);
  }

  // ---- the data section ----

  std::uint64_t alignment() const {
    const auto found = entries_.find("general.alignment");
    if (found == entries_.end()) return 32;
    std::uint64_t value = 0;
    const std::string& text = found->second;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || *stop != '\0' || value == 0 || value % 8 != 0 ||
        value > kLongestText)
      throw refuse(cat("general.alignment is ", quote(text), ", has to be a multiple of 8 up to ",
                       kLongestText, ".", kFaulty));
    return value;
  }

  // Tensors may have padding between them, but share no byte. Makes their offsets those of the
  // file.
  void place_data() {
    const std::uint64_t align = alignment();
    std::vector<TensorEntry>& tensors = header_.tensors;
    header_.data_offset = std::min<std::uint64_t>((at_ + align - 1) / align * align, file_.size());
    const std::uint64_t room = file_.size() - header_.data_offset;
    std::sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
      return std::pair(a.offset, a.size) < std::pair(b.offset, b.size);
    });
    std::uint64_t covered = 0;
    for (TensorEntry& tensor : tensors) {
      if (tensor.offset % align != 0)
        throw refuse_tensor(tensor.name, cat("it begins at byte ", tensor.offset,
                                             " of the data section, which is no multiple of ",
                                             align, ".", kFaulty));
      if (tensor.offset > room || tensor.size > room - tensor.offset)
        throw refuse_tensor(
            tensor.name, cat("its ", tensor.size, " bytes from byte ", tensor.offset,
                             " of the data section on pass the ", room,
                             " that the file has there (file size ", file_.size(), ").", kCutOff));
      if (tensor.offset < covered)
        throw refuse_tensor(tensor.name, cat("it begins at byte ", tensor.offset,
                                             " of the data section, but the tensor before ends at ",
                                             covered, ".", kFaulty));
      covered = tensor.offset + tensor.size;
      tensor.offset += header_.data_offset;
    }
    std::sort(tensors.begin(), tensors.end(),
              [](const TensorEntry& a, const TensorEntry& b) { return a.name < b.name; });
    const auto twice =
        std::adjacent_find(tensors.begin(), tensors.end(),
                           [](const auto& a, const auto& b) { return a.name == b.name; });
    if (twice != tensors.end())
      throw refuse_tensor(twice->name, cat("the name is given more than once.", kFaulty));
  }

  std::span<const std::byte> file_;
  std::string_view file_name_;
  std::uint64_t at_ = 0;
  std::string what_;                                         // is being read
  std::map<std::string, std::string, std::less<>> entries_;  // what of them is text
  GgufHeader header_;
};

}  // namespace

bool is_gguf(std::span<const std::byte> file) {
  return file.size() >= kMagic.size() &&
         std::memcmp(file.data(), kMagic.data(), kMagic.size()) == 0;
}

GgufHeader parse_gguf(std::span<const std::byte> file, std::string_view file_name) {
  return GgufReader(file, file_name).read();
}

}  // namespace heddle::engine
