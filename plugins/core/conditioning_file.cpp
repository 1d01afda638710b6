#include "conditioning_file.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>

#include "json_dump.h"
#include "plugins/blocks/safetensors_text.h"

namespace heddle::loaders {
namespace {

using blocks::StoredTensor;

constexpr const char* kText = "conditioning";
constexpr const char* kOptions = "conditioning_options";
constexpr const char* kReferences = "reference_latents";
constexpr blocks::KindOfFile kConditioning{
    "conditioning", "Give a file that SaveConditioning wrote, from the folder 'embeddings'."};

// The tensors of a file in the making, and the bytes that they look at.
class TensorsToSave {
 public:
  explicit TensorsToSave(Context& ctx) : ctx_(ctx) {}

  void add(const std::string& name, const Tensor& tensor) {
    bytes_.push_back(std::make_unique<blocks::HostBytes>(ctx_, tensor));
    tensors_.push_back({name, tensor.dtype(), tensor.shape(), bytes_.back()->bytes()});
  }
  std::string file(const Value& options) const {
    return blocks::safetensors_text(tensors_, {{kOptions, json_dump(options, 0)}});
  }

 private:
  Context& ctx_;
  std::vector<std::unique_ptr<blocks::HostBytes>> bytes_;
  std::vector<StoredTensor> tensors_;
};

bool is_json_scalar(const Value& value) {
  return value.is(HEDDLE_KIND_BOOL) || value.is(HEDDLE_KIND_INT) || value.is(HEDDLE_KIND_UINT) ||
         value.is(HEDDLE_KIND_FLOAT) || value.is(HEDDLE_KIND_STR);
}

// The tensor of an element of a list; files hold latents in the autoencoder's units alone.
Tensor tensor_in(const std::string& key, const Value& item) {
  if (item.is(HEDDLE_KIND_TENSOR)) return item.as<Tensor>();
  if (key == kReferences && item.field("samples").is(HEDDLE_KIND_TENSOR) &&
      !item.get<bool>("scaled", false))
    return item.field("samples").as<Tensor>();
  throw Error(HEDDLE_UNSUPPORTED, "conditioning: its '" + key +
                                      "' cannot be saved. Save it before the node that sets this, "
                                      "and set it again behind ConditioningLoader.");
}

// "key.3": the key and 3. Nothing for another name.
struct Numbered {
  std::string key;
  std::uint32_t index;
};
std::optional<Numbered> numbered(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos) return std::nullopt;
  std::uint32_t index = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + dot + 1, end, index);
  if (error != std::errc() || stop != end) return std::nullopt;
  return Numbered{name.substr(0, dot), index};
}

Value options_in(const Value& notes, const std::string& name) {
  const Value text = notes.field(kOptions);
  if (!text.is(HEDDLE_KIND_STR)) return {};
  heddle_value* parsed = nullptr;
  const std::string_view json = text.text();
  check(service<heddle_json_service>().parse(services.host, {json.data(), json.size()},
                                             name.c_str(), &parsed));
  return Value::adopt(parsed);
}

}  // namespace

std::string conditioning_file(Context& ctx, const Value& conditioning) {
  if (conditioning.count() != 1)
    throw Error(HEDDLE_INVALID_ARGUMENT, "conditioning: it has " +
                                             std::to_string(conditioning.count()) +
                                             " entries, and a file holds one. Save it before it is "
                                             "combined.");
  const Value entry = conditioning.item(0);
  TensorsToSave tensors(ctx);
  tensors.add(kText, entry.field("cross_attn").as<Tensor>());
  Record options;
  for (std::uint32_t i = 0; i < entry.count(); ++i) {
    const std::string key = entry.key(i);
    const Value value = entry.item(i);
    if (key == "cross_attn" || value.is(HEDDLE_KIND_NONE)) continue;
    if (is_json_scalar(value)) {
      options.set(key, value);
    } else if (value.is(HEDDLE_KIND_LIST)) {
      for (std::uint32_t k = 0; k < value.count(); ++k)
        tensors.add(key + "." + std::to_string(k), tensor_in(key, value.item(k)));
    } else {
      tensors.add(key, tensor_in(key, value));
    }
  }
  return tensors.file(options.value());
}

Value read_conditioning_file(Context& ctx, std::span<const std::uint8_t> bytes,
                             const std::string& name) {
  const blocks::StoredTensors file = blocks::read_safetensors(bytes, name, kConditioning);
  const StoredTensor* const text = file.find(kText);
  if (text == nullptr)
    throw Error(HEDDLE_INVALID_ARGUMENT, name + ": this is no " + kConditioning.what +
                                             ": it has no tensor '" + kText + "'. " +
                                             kConditioning.advice);
  Record entry;
  entry.set("cross_attn", value_of(blocks::to_tensor(ctx, *text)));
  const Value options = options_in(file.notes, name);
  if (options.is(HEDDLE_KIND_RECORD))
    for (std::uint32_t i = 0; i < options.count(); ++i)
      if (is_json_scalar(options.item(i))) entry.set(options.key(i), options.item(i));
  std::map<std::string, std::map<std::uint32_t, Value>> lists;
  for (const StoredTensor& tensor : file.tensors) {
    if (&tensor == text) continue;
    const Value value = value_of(blocks::to_tensor(ctx, tensor));
    if (const auto part = numbered(tensor.name))
      lists[part->key][part->index] =
          part->key == kReferences ? Record().set("samples", value).value() : value;
    else
      entry.set(tensor.name, value);
  }
  for (const auto& [key, items] : lists) {
    std::vector<Value> list;
    for (const auto& [index, item] : items) list.push_back(item);
    entry.set(key, list_of(list));
  }
  return list_of({entry.value()});
}

}  // namespace heddle::loaders
