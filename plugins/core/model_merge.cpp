#include "model_merge.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <heddle/diffusion/module_names.h>

namespace heddle::loaders {
namespace {

using Names = std::map<std::string, std::vector<Part>>;

std::int64_t row_count(const Checkpoint& file, const std::string& tensor) {
  const heddle_tensor_info& info = file.info(tensor);
  return info.rank == 0 ? 1 : info.shape[0];
}

// With ends in numbers, and neighbouring rows of a tensor as one part.
std::vector<Part> joined_rows(const Checkpoint& file, const std::vector<Part>& parts) {
  std::vector<Part> result;
  for (Part part : parts) {
    if (part.end < 0) part.end = row_count(file, part.tensor);
    if (!result.empty() && result.back().tensor == part.tensor && result.back().end == part.begin)
      result.back().end = part.end;
    else
      result.push_back(std::move(part));
  }
  return result;
}

// Every weight by each of the names that its family has for it; empty for other families.
Names named_weights(const Value& model, const Checkpoint& file) {
  Names names;
  const std::string family = model_family(model);
  const auto* desc = find_provided<heddle_module_names_desc>(
      HEDDLE_MODULE_NAMES, [&](const auto& each) { return family == each.family; });
  if (desc == nullptr) return names;
  struct To {
    Names& names;
    const Checkpoint& file;
  } to{names, file};
  const auto found = [](void* raw, const char* module, const char* kind, std::uint32_t count,
                        const heddle_part* const* parts) {
    const To& into = *static_cast<To*>(raw);
    std::vector<Part> list;
    for (std::uint32_t i = 0; i < count; ++i)
      list.push_back({parts[i]->tensor, parts[i]->begin, parts[i]->end});
    into.names.try_emplace(std::string(module) + "." + kind, joined_rows(into.file, list));
  };
  check(desc->list(services.host, file.raw(), found, &to));
  return names;
}

bool is_whole_tensor(const Checkpoint& file, const std::vector<Part>& parts) {
  return parts.size() == 1 && parts[0].begin == 0 &&
         parts[0].end == row_count(file, parts[0].tensor);
}

bool have_one_shape(const heddle_tensor_info& a, const heddle_tensor_info& b) {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

// Where each tensor of the second model goes in the first.
class Counterparts {
 public:
  Counterparts(const Value& first, const Value& second, const std::vector<BlockRatio>& named)
      : first_(model_checkpoint(first)),
        second_(model_checkpoint(second)),
        names_(named_weights(first, first_)) {
    for (const auto& [name, parts] : named_weights(second, second_)) {
      if (is_whole_tensor(second_, parts)) by_name_.try_emplace(parts[0].tensor, name);
      const bool is_original = std::any_of(
          named.begin(), named.end(),
          [&name = name](const BlockRatio& one) { return name.starts_with(one.prefix); });
      if (is_original)
        for (const Part& part : parts) originals_.try_emplace(part.tensor, name);
    }
  }
  const Checkpoint& second() const { return second_; }

  // Empty: it has none.
  std::vector<Part> of(const std::string& tensor) const {
    if (first_.has(tensor) && have_one_shape(first_.info(tensor), second_.info(tensor)))
      return {{tensor}};
    const auto name = by_name_.find(tensor);
    if (name == by_name_.end()) return {};
    const auto found = names_.find(name->second);
    return found == names_.end() ? std::vector<Part>() : found->second;
  }
  const std::string& original(const std::string& tensor) const {
    const auto found = originals_.find(tensor);
    return found == originals_.end() ? tensor : found->second;
  }

 private:
  Checkpoint first_, second_;
  Names names_;                                             // of the first
  std::unordered_map<std::string, std::string> by_name_;    // tensor of the second: its name
  std::unordered_map<std::string, std::string> originals_;  // the same, of the original files
};

Value merged(const Value& first, const Value& second, const Counterparts& counterparts,
             const ShareOf& share) {
  const Checkpoint& file = counterparts.second();
  std::vector<Patch> patches;
  std::uint32_t missing = 0;
  for (std::uint32_t i = 0; i < file.size(); ++i) {
    const std::string tensor = file.name(i);
    std::vector<Part> rows = counterparts.of(tensor);
    if (rows.empty()) {
      ++missing;
      continue;
    }
    const Share wanted = share(counterparts.original(tensor));
    if (wanted.keep == 1 && wanted.add == 0) continue;
    patches.push_back({tensor, "", wanted.add, std::move(rows), wanted.keep});
  }
  if (missing == file.size())
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": none of its " + std::to_string(missing) +
                    " weights is one of the other model, which is of the family '" +
                    model_family(first) + "'. Merge models of one family and size.");
  if (missing > 0)
    log(HEDDLE_WARN, file.path() + ": " + std::to_string(missing) + " of its " +
                         std::to_string(file.size()) +
                         " weights are none of the other model and are left out");
  return patches.empty() ? first : merged_with(first, second, patches);
}

// Of the longest prefix that the name begins with.
double ratio_of(std::string_view weight, const std::vector<BlockRatio>& ratios) {
  const BlockRatio* best = &ratios.front();
  std::size_t length = 0;
  for (const BlockRatio& each : ratios)
    if (weight.starts_with(each.prefix) && each.prefix.size() > length) {
      best = &each;
      length = each.prefix.size();
    }
  return best->ratio;
}

}  // namespace

Value merged_models(const Value& first, const Value& second, const ShareOf& share) {
  return merged(first, second, Counterparts(first, second, {}), share);
}

Value merged_by_blocks(const Value& first, const Value& second,
                       const std::vector<BlockRatio>& ratios) {
  return merged(first, second, Counterparts(first, second, ratios),
                [&](std::string_view weight) { return share_of(ratio_of(weight, ratios)); });
}

Value merged_clips(const Value& first, const Value& second, const Share& share) {
  std::vector<Value> encoders;
  const Value ours = first.field("encoders"), theirs = second.field("encoders");
  bool any = false;
  for (std::uint32_t i = 0; i < ours.count(); ++i) {
    Value encoder = ours.item(i);
    for (std::uint32_t j = 0; j < theirs.count(); ++j) {
      const Value other = theirs.item(j);
      if (other.get<std::string>("name", "") != encoder.get<std::string>("name", "")) continue;
      any = true;
      Record merged(encoder);
      for (const char* field : {"model", "writer"})
        if (encoder.has(field) && other.has(field))
          merged.set(field, merged_models(encoder.field(field), other.field(field),
                                          [&](std::string_view) { return share; }));
      encoder = merged.value();
      break;
    }
    encoders.push_back(encoder);
  }
  if (!any)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "clip2: it has none of clip1's text encoders. Merge encoders of one kind.");
  return Record(first).set("encoders", list_of(encoders)).value();
}

namespace {

// By the original names and by those of diffusers.
bool is_of_frames(const std::string& name) {
  return name.find(".time_stack.") != name.npos ||
         name.find(".temporal_transformer_blocks.") != name.npos;
}

}  // namespace

Value multiplied(const Value& model, const std::vector<Factor>& factors) {
  const Checkpoint file = model_checkpoint(model);
  std::vector<Patch> patches;
  for (std::uint32_t i = 0; i < file.size(); ++i)
    for (const Factor& factor : factors)
      if (const std::string name = file.name(i);
          name.ends_with(factor.ending) && factor.factor != 1 &&
          factor.is_of_frames.value_or(is_of_frames(name)) == is_of_frames(name))
        patches.push_back({"", "", 0, {{name}}, factor.factor});
  return patches.empty() ? model : with_patches(model, file, patches);
}

}  // namespace heddle::loaders
