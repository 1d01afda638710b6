#include "engine/files/pytorch.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/files/pickle.h"
#include "engine/files/pytorch_dict.h"
#include "engine/files/pytorch_names.h"
#include "engine/files/zip_directory.h"

namespace heddle::engine {
namespace {

constexpr std::string_view kTorchDamaged =
    " The file is damaged or its download is incomplete; fetch it again.";
constexpr std::string_view kTorchConvert = " Convert the file to safetensors.";
// The bytes of 0x1950a86a20f9469cfc6c, by which torch.save's older files begin.
constexpr std::string_view kTorchMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr std::int64_t kTorchVersion = 1001;
constexpr std::size_t kMostTorchAxes = 8;  // HEDDLE_MAX_RANK
constexpr std::size_t kDeepestDict = 8;    // dicts in each other
constexpr std::size_t kMostDictValues = 4
                                        << 20;  // values of dicts, each as often as it stands there
constexpr std::size_t kMostNameBytes = 64 << 20;                      // of all tensors
constexpr std::uint64_t kMostTorchElements = std::uint64_t(1) << 52;  // of a tensor or a storage

struct TorchStorage {
  std::uint64_t offset = 0, size = 0;  // bytes, in the file
};

// For messages.
std::string shown(const PickleValue& value) {
  if (is_whole(value)) return cat(value.number);
  if (value.kind == PickleKind::integer) return cat("of ", value.text.size(), " bytes");
  return value.kind == PickleKind::text ? quote(value.text) : "no number";
}

class PytorchReader {
 public:
  PytorchReader(std::span<const std::byte> file, std::string_view file_name)
      : file_(file), file_name_(file_name) {}

  PytorchContent read() {
    if (is_zip(file_)) {
      read_zip();
    } else {
      read_legacy();
    }
    const std::uint32_t dict = pytorch_model_dict(pickle_, file_name_);
    add_dict(dict, "", 0);
    Hasher hasher;
    PytorchContent content;
    for (auto& [name, tensor] : tensors_) {
      hasher.add(name).add(std::int32_t(tensor.dtype)).add(tensor.shape.size());
      for (const std::int64_t size : tensor.shape) hasher.add(size);
      hasher.add(tensor.offset).add(tensor.size);
      content.tensors.push_back(std::move(tensor));
    }
    content.metadata = pytorch_facts(pickle_, dict);
    for (const auto& [key, fact] : content.metadata) hasher.add(key).add(fact);
    content.hash = hasher.finish();
    return content;
  }

 private:
  Error refuse(std::string_view what) const {
    return Error(Code::invalid_argument, cat(file_name_, ": ", what));
  }
  Error refuse_tensor(std::string_view name, std::string_view what) const {
    return refuse(cat("tensor ", quote(name), ": ", what));
  }
  Error lacks(std::string_view name, std::string_view what) const {
    return Error(Code::unsupported, cat(file_name_, ": tensor ", quote(name), ": ", what));
  }

  // ---- the two formats ----

  void read_zip() {
    const std::vector<ZipEntry> entries = read_zip_directory(file_, file_name_);
    const auto pickle = std::find_if(entries.begin(), entries.end(), [](const ZipEntry& entry) {
      return entry.name.ends_with("/data.pkl") &&
             std::count(entry.name.begin(), entry.name.end(), '/') == 1;
    });
    if (pickle == entries.end())
      throw refuse("this is a zip file, but not one of torch.save: it has no 'data.pkl'.");
    const std::string_view root = pickle->name.substr(0, pickle->name.size() - 8);
    for (const ZipEntry& entry : entries) {
      if (!entry.name.starts_with(root)) continue;
      const std::string_view name = entry.name.substr(root.size());
      if (name == "constants.pkl")
        throw Error(Code::unsupported,
                    cat(file_name_, ": this is a TorchScript program, not a file of weights.",
                        kTorchConvert));
      const bool is_storage = name.starts_with("data/");
      if (!is_storage && name != "data.pkl" && name != "byteorder") continue;
      if (!entry.is_plain)
        throw Error(Code::unsupported,
                    cat(file_name_, ": the zip entry ", quote(entry.name),
                        " is compressed or encrypted, so it cannot be mapped. Save the file again "
                        "with torch.save."));
      if (is_storage) storages_[name.substr(5)] = {entry.offset, entry.size};
      if (name == "byteorder" && text_of(entry) != "little")
        throw Error(Code::unsupported, cat(file_name_, ": the file's byte order is ",
                                           quote(text_of(entry)), ".", kTorchConvert));
    }
    pickle_ = read_pickle(file_.subspan(pickle->offset, pickle->size),
                          cat(file_name_, ": ", pickle->name), pytorch_names());
  }

  std::string_view text_of(const ZipEntry& entry) const {
    return {reinterpret_cast<const char*>(file_.data()) + entry.offset, entry.size};
  }

  Pickle next_pickle(std::size_t& at, std::string_view what) const {
    Pickle pickle = read_pickle(file_.subspan(at), cat(file_name_, ": ", what), pytorch_names());
    at += pickle.size;
    return pickle;
  }

  void read_legacy() {
    std::size_t at = 0;
    const Pickle magic = next_pickle(at, "the magic number");
    if (magic[magic.root].text != kTorchMagic)
      throw refuse(cat("this is a pickle, but not one of torch.save.", kTorchConvert));
    const Pickle version = next_pickle(at, "the version");
    const PickleValue& given = version[version.root];
    if (!is_whole(given) || given.number != kTorchVersion)
      throw Error(Code::unsupported, cat(file_name_, ": the version ", shown(given),
                                         " of torch.save's files is not known, only ",
                                         kTorchVersion, ".", kTorchConvert));
    check_machine(next_pickle(at, "the facts about the machine"));
    pickle_ = next_pickle(at, "the values");
    const Pickle keys = next_pickle(at, "the keys of storages");
    const std::map<std::string_view, std::uint64_t> sizes = legacy_element_sizes();
    for (const std::uint32_t index : keys[keys.root].items) {
      const std::string_view key = keys[index].text;
      const auto size = sizes.find(key);
      if (size == sizes.end())
        throw refuse(cat("the storage ", quote(key), " belongs to no tensor.", kTorchDamaged));
      place_legacy(key, size->second, at);
    }
  }

  void check_machine(const Pickle& facts) const {
    const PickleValue& dict = facts[facts.root];
    if (dict.kind != PickleKind::dict) return;
    for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2)
      if (facts[dict.items[i]].text == "little_endian" && facts[dict.items[i + 1]].number == 0)
        throw Error(Code::unsupported, cat(file_name_, ": the file is big-endian.", kTorchConvert));
  }

  // What a storage has per element is known by those that name it.
  std::map<std::string_view, std::uint64_t> legacy_element_sizes() const {
    std::map<std::string_view, std::uint64_t> sizes;
    for (const PickleValue& value : pickle_.values) {
      if (value.kind != PickleKind::persistent) continue;
      const PickleValue& id = pickle_[value.items.front()];
      const PytorchName* type = id.items.size() < 5 ? nullptr : known_of(pickle_[id.items[1]]);
      if (type == nullptr || !type->dtype) continue;  // refused where a tensor wants it
      const std::string_view key = pickle_[id.items[2]].text;
      const auto [at, is_new] = sizes.try_emplace(key, dtype_size(*type->dtype));
      if (!is_new && at->second != dtype_size(*type->dtype))
        throw refuse(cat("the storage ", quote(key), " is of two types.", kTorchDamaged));
    }
    return sizes;
  }

  void place_legacy(std::string_view key, std::uint64_t element_size, std::size_t& at) {
    std::int64_t count = 0;
    if (file_.size() - at < sizeof count)
      throw refuse(cat("the file ends before the storage ", quote(key), ".", kTorchDamaged));
    std::memcpy(&count, file_.data() + at, sizeof count);
    at += sizeof count;
    if (count < 0 || std::uint64_t(count) > (file_.size() - at) / element_size)
      throw refuse(cat("the storage ", quote(key), " is to have ", count, " elements of ",
                       element_size, " bytes, but the file has only ", file_.size() - at,
                       " bytes left.", kTorchDamaged));
    const std::uint64_t size = std::uint64_t(count) * element_size;
    if (!storages_.try_emplace(key, TorchStorage{at, size}).second)
      throw refuse(cat("the storage ", quote(key), " is there twice.", kTorchDamaged));
    at += size;
  }

  // ---- dicts ----

  void count_value() {
    if (++visited_ > kMostDictValues)
      throw refuse(
          cat("its dicts hold more than ", kMostDictValues, " values, which no model has."));
  }

  void add_dict(std::uint32_t dict, const std::string& prefix, std::size_t depth) {
    if (depth > kDeepestDict)
      throw refuse(
          cat("its dicts are nested deeper than ", kDeepestDict, ", at ", quote(prefix), "."));
    const auto& items = pickle_[dict].items;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      count_value();
      const PickleValue &key = pickle_[items[i]], &value = pickle_[items[i + 1]];
      const bool is_dict = value.kind == PickleKind::dict,
                 is_list = is_whole(key) &&
                           (value.kind == PickleKind::list || value.kind == PickleKind::tuple);
      if (!is_dict && !is_list && value.kind != PickleKind::call) continue;
      if (key.kind != PickleKind::text && !is_whole(key)) continue;
      const std::string name =
          cat(prefix, key.kind == PickleKind::text ? std::string(key.text) : cat(key.number));
      name_bytes_ += name.size();
      if (name_bytes_ > kMostNameBytes)
        throw refuse(cat("the names of its tensors have more than ", kMostNameBytes, " bytes."));
      if (is_dict) {
        add_dict(items[i + 1], name + ".", depth + 1);
      } else if (is_list) {
        add_dicts_of(value, name + ".", depth + 1);
      } else if (const auto tensor = tensor_of(name, value)) {
        tensors_[name] = *tensor;
      }
    }
  }

  void add_dicts_of(const PickleValue& list, const std::string& prefix, std::size_t depth) {
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      count_value();
      if (pickle_[list.items[i]].kind == PickleKind::dict)
        add_dict(list.items[i], cat(prefix, i, "."), depth + 1);
    }
  }

  // ---- tensors ----

  const PytorchName* known_of(const PickleValue& value) const {
    return value.kind == PickleKind::global ? pytorch_name(std::size_t(value.number)) : nullptr;
  }

  // The arguments of a call, and what is called.
  std::pair<const PytorchName*, const std::vector<std::uint32_t>*> call_of(
      const PickleValue& value) const {
    if (value.kind != PickleKind::call) return {nullptr, nullptr};
    return {known_of(pickle_[value.items[0]]), &pickle_[value.items[1]].items};
  }

  std::optional<TensorEntry> tensor_of(const std::string& name, const PickleValue& value) const {
    auto [what, arguments] = call_of(value);
    if (what == nullptr) return std::nullopt;
    if (what->role == PytorchRole::parameter) {
      if (arguments->empty())
        throw refuse_tensor(name, cat("the parameter is empty.", kTorchDamaged));
      std::tie(what, arguments) = call_of(pickle_[arguments->front()]);
      if (what == nullptr) throw refuse_tensor(name, cat("it is no tensor.", kTorchDamaged));
    }
    const bool has_type = what->role == PytorchRole::tensor_v3;
    if (what->role != PytorchRole::tensor && !has_type) return std::nullopt;
    if (arguments->size() < (has_type ? 7u : 4u))
      throw refuse_tensor(
          name, cat("only ", arguments->size(), " facts about it are given.", kTorchDamaged));
    const auto& given = *arguments;
    const PytorchName* type = has_type ? known_of(pickle_[given[6]]) : nullptr;
    const auto [storage, dtype] = storage_of(name, pickle_[given[0]], type);
    TensorEntry tensor{.name = name, .dtype = dtype, .shape = numbers(name, pickle_[given[2]])};
    check_strides(tensor, numbers(name, pickle_[given[3]]));
    const PickleValue& first = pickle_[given[1]];
    if (!is_whole(first))
      throw refuse_tensor(name, cat("it begins in its storage at ", pickle_kind_name(first.kind),
                                    " (", shown(first), ").", kTorchDamaged));
    place(tensor, first.number, storage);
    return tensor;
  }

  std::vector<std::int64_t> numbers(std::string_view name, const PickleValue& value) const {
    const auto [what, arguments] = call_of(value);  // torch.Size((2, 3))
    const PickleValue& tuple =
        what != nullptr && !arguments->empty() ? pickle_[arguments->front()] : value;
    if (tuple.kind != PickleKind::tuple)
      throw refuse_tensor(name, cat("its shape or strides are ", pickle_kind_name(tuple.kind),
                                    ", not a tuple.", kTorchDamaged));
    if (tuple.items.size() > kMostTorchAxes)
      throw lacks(name, cat("it has ", tuple.items.size(), " axes, at most ", kMostTorchAxes,
                            " are read."));
    std::vector<std::int64_t> result;
    for (const std::uint32_t item : tuple.items) {
      const PickleValue& number = pickle_[item];
      if (!is_whole(number) || number.number < 0)
        throw refuse_tensor(name, cat("its shape or strides hold ", pickle_kind_name(number.kind),
                                      " (", shown(number), ").", kTorchDamaged));
      result.push_back(number.number);
    }
    return result;
  }

  // Of ("storage", type, key, place, number of elements): where its bytes stand, and their type.
  std::pair<TorchStorage, DType> storage_of(std::string_view name, const PickleValue& value,
                                            const PytorchName* told) const {
    const PickleValue* const id =
        value.kind == PickleKind::persistent ? &pickle_[value.items.front()] : nullptr;
    if (id == nullptr || id->items.size() < 5 || pickle_[id->items[0]].text != "storage")
      throw refuse_tensor(name, cat("it has no storage.", kTorchDamaged));
    if (id->items.size() > 5 && pickle_[id->items[5]].kind != PickleKind::none)
      throw lacks(name, cat("its storage is a part of another one.", kTorchConvert));
    const PytorchName* type = known_of(pickle_[id->items[1]]);
    if (type != nullptr && type->role == PytorchRole::untyped) type = told;
    if (type == nullptr || !type->dtype)
      throw lacks(name, cat("its element type is not known.", kTorchConvert));
    const std::string_view key = pickle_[id->items[2]].text;
    const auto found = storages_.find(key);
    if (found == storages_.end())
      throw refuse_tensor(name,
                          cat("its storage ", quote(key), " is not in the file.", kTorchDamaged));
    return {found->second, *type->dtype};
  }

  void check_strides(const TensorEntry& tensor, const std::vector<std::int64_t>& strides) const {
    if (strides.size() != tensor.shape.size())
      throw refuse_tensor(tensor.name, cat("it has ", tensor.shape.size(), " axes, but ",
                                           strides.size(), " strides.", kTorchDamaged));
    std::uint64_t dense = 1;
    for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
      const auto size = std::uint64_t(tensor.shape[axis]);
      if (size > 1 && std::uint64_t(strides[axis]) != dense)
        throw lacks(tensor.name,
                    cat("it is not contiguous: the shape (", join(tensor.shape, ", "),
                        ") has the strides (", join(strides, ", "),
                        "). Save it again with .contiguous(), or convert it to safetensors."));
      if (size == 0) return;
      if (size > kMostTorchElements / dense)
        throw refuse_tensor(tensor.name, cat("the shape (", join(tensor.shape, ", "),
                                             ") has more than 2^52 elements.", kTorchDamaged));
      dense *= size;
    }
  }

  void place(TensorEntry& tensor, std::int64_t first, const TorchStorage& storage) const {
    std::uint64_t elements = 1;
    for (const std::int64_t size : tensor.shape) elements *= std::uint64_t(size);
    const std::uint64_t width = dtype_size(tensor.dtype), room = storage.size / width;
    if (first < 0 || std::uint64_t(first) > room || elements > room - std::uint64_t(first))
      throw refuse_tensor(tensor.name,
                          cat("its ", elements, " elements from ", first, " on pass the ", room,
                              " of its storage.", kTorchDamaged));
    tensor.offset = storage.offset + std::uint64_t(first) * width;
    tensor.size = elements * width;
  }

  std::span<const std::byte> file_;
  std::string_view file_name_;
  Pickle pickle_;
  std::map<std::string_view, TorchStorage> storages_;  // by key
  std::map<std::string, TensorEntry> tensors_;
  std::size_t visited_ = 0, name_bytes_ = 0;
};

}  // namespace

bool is_pytorch(std::span<const std::byte> file) {
  // A pickle begins with its protocol: as a safetensors header's length that would be out of reach.
  constexpr std::size_t kHeader = 9;
  if (file.size() < 2) return false;
  const auto byte = [&](std::size_t i) { return std::to_integer<int>(file[i]); };
  const bool may_be_safetensors = file.size() >= kHeader && byte(kHeader - 1) == '{';
  if (may_be_safetensors) return false;
  return is_zip(file) || (byte(0) == 0x80 && byte(1) >= 2 && byte(1) <= 5);
}

PytorchContent parse_pytorch(std::span<const std::byte> file, std::string_view file_name) {
  return PytorchReader(file, file_name).read();
}

}  // namespace heddle::engine
