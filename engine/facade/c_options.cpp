#include "engine/facade/c_options.h"

#include <map>

namespace heddle {

std::vector<std::string> list_of(const char* const* items, std::size_t count, const char* what) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < count; ++i)
    list.emplace_back(view_of(items == nullptr ? nullptr : items[i], what));
  return list;
}

namespace {

std::map<std::string, std::string> map_of(const heddle_option* items, std::size_t count,
                                          const char* what) {
  std::map<std::string, std::string> map;
  for (std::size_t i = 0; i < count; ++i)
    map.emplace(view_of((&given(items, what))[i].key, what), view_of(items[i].value, what));
  return map;
}

MemorySize size_of(std::string_view text, std::string_view what) {
  if (const auto share = engine::parse_percent(text)) return MemorySize::of_all(*share);
  if (const auto bytes = engine::parse_bytes(text)) return *bytes;
  throw engine::Error(engine::Code::invalid_argument,
                      engine::cat(what, " is ", engine::quote(text),
                                  R"(: give a number of bytes, "14GiB" or "60%")"));
}

std::uint64_t bytes_of(std::string_view text, std::string_view what) {
  if (const auto bytes = engine::parse_bytes(text)) return *bytes;
  throw engine::Error(
      engine::Code::invalid_argument,
      engine::cat(what, " is ", engine::quote(text), R"(: give a number of bytes, or "2GiB")"));
}

}  // namespace

PreviewMethod preview_method_of(std::int32_t previews) {
  if (previews < 0 || previews > std::int32_t(PreviewMethod::taesd))
    throw engine::Error(engine::Code::invalid_argument,
                        engine::cat("previews is ", previews, "; expected 0, 1 or 2."));
  return PreviewMethod(previews);
}

std::optional<Fidelity> fidelity_of(heddle_fidelity fidelity) {
  switch (fidelity) {
    case HEDDLE_FIDELITY_DEFAULT:
      return {};
    case HEDDLE_FIDELITY_EXACT:
      return Fidelity::exact;
    case HEDDLE_FIDELITY_ROUNDING:
      return Fidelity::rounding;
    default:
      throw engine::Error(engine::Code::invalid_argument,
                          engine::cat("fidelity is ", fidelity, ": give a HEDDLE_FIDELITY_"));
  }
}

EngineOptions options_of(const heddle_engine_options* from) {
  const heddle_engine_options o = known_part(from, "heddle_engine_options");
  EngineOptions options;
  for (std::string& dir : list_of(o.plugin_dirs, o.plugin_dir_count, "plugin_dirs"))
    options.plugin_dirs.emplace_back(std::move(dir));
  for (std::string& dir : list_of(o.model_dirs, o.model_dir_count, "model_dirs"))
    options.model_dirs.emplace_back(std::move(dir));
  options.default_plugin_dir = text_or(o.default_plugin_dir, "");
  options.input_dir = text_or(o.input_dir, "");
  options.output_dir = text_or(o.output_dir, "");
  options.comfyui_dir = text_or(o.comfyui_dir, "");
  options.costs = text_or(o.costs, "");
  options.devices = list_of(o.devices, o.device_count, "devices");
  options.compute = map_of(o.compute, o.compute_count, "compute");
  options.attention_dtype = text_or(o.attention_dtype, "");
  options.linear_dtype = text_or(o.linear_dtype, "");
  options.device_options = map_of(o.device_options, o.device_option_count, "device_options");
  for (const auto& [device, text] : map_of(o.budgets, o.budget_count, "budgets"))
    options.budgets[device] = size_of(text, engine::cat("the budget of ", device));
  options.threads = o.threads;
  options.cache_bytes = o.cache_bytes;
  options.reference_kernels = o.reference_kernels != 0;
  if (o.log != nullptr)
    options.log = [log = o.log, user = o.log_user](int level, std::string_view message) {
      log(user, level, {message.data(), message.size()});
    };
  options.allocator = {o.allocate, o.free, o.allocator_user};
  for (const auto& [device, text] : map_of(o.reserves, o.reserve_count, "reserves"))
    options.reserves[device] = size_of(text, engine::cat("the reserve of ", device));
  if (o.host_budget != nullptr) options.host_budget = size_of(o.host_budget, "the host budget");
  if (o.pinned != nullptr) options.pinned = size_of(o.pinned, "the pinned memory");
  if (o.host_floor != nullptr) options.host_floor = size_of(o.host_floor, "the host floor");
  options.idle_seconds = o.idle_seconds;
  options.fidelity = fidelity_of(o.fidelity).value_or(Fidelity::exact);
  options.isolation.plugins = list_of(o.isolate, o.isolate_count, "isolate");
  if (!(o.isolate_seconds >= 0))
    throw engine::Error(engine::Code::invalid_argument,
                        engine::cat("isolate_seconds is ", o.isolate_seconds,
                                    "; it is a number of seconds, or 0 for no limit"));
  options.isolation.call_seconds = o.isolate_seconds;
  options.isolation.sandbox = o.isolate_sandbox != 0;
  for (std::string& dir : list_of(o.python_nodes, o.python_node_count, "python_nodes"))
    options.isolation.python_nodes.emplace_back(std::move(dir));
  options.isolation.python = text_or(o.python, "");
  if (o.isolate_memory != nullptr)
    options.isolation.memory_bytes = bytes_of(o.isolate_memory, "the memory of a worker");
  if (o.prompt_limit != 0) options.prompt_limit = o.prompt_limit;
  return options;
}

namespace {

InputValue value_of(const heddle_run_input& input) {
  switch (input.kind) {
    case HEDDLE_KIND_BOOL:
      return input.integer != 0;
    case HEDDLE_KIND_INT:
      return input.integer;
    case HEDDLE_KIND_FLOAT:
      return input.number;
    case HEDDLE_KIND_STR:
      return std::string(view_of(input.text, "heddle_run_input.text"));
    case HEDDLE_KIND_TENSOR:
      return input.tensor;
    default:
      throw engine::Error(
          engine::Code::invalid_argument,
          engine::cat("the input ", engine::quote(input.name), " has the kind ", input.kind,
                      ": it can be a boolean, an integer, a number, a string or a tensor"));
  }
}

}  // namespace

InputsFromC::InputsFromC(const heddle_start_options& o) {
  for (std::size_t i = 0; o.inputs != nullptr && i < o.input_count; ++i) {
    heddle_run_input known{};
    if (o.inputs[i] != nullptr)
      std::memcpy(&known, o.inputs[i], std::min<std::size_t>(o.inputs[i]->size, sizeof known));
    all_.push_back(known);
  }
}

InputsFromC::~InputsFromC() {
  for (const heddle_run_input& input : all_)
    if (input.kind == HEDDLE_KIND_TENSOR && input.tensor != nullptr &&
        input.tensor->deleter != nullptr)
      input.tensor->deleter(input.tensor);
}

Inputs InputsFromC::release() {
  using Fields = std::map<std::string, DLManagedTensor*>;
  Inputs values;
  const auto twice = [](const char* name) {
    return engine::Error(engine::Code::invalid_argument,
                         engine::cat("the input ", engine::quote(name), " is given twice"));
  };
  for (const heddle_run_input& input : all_) {
    const std::string name(view_of(input.name, "heddle_run_input.name"));
    if (input.kind == HEDDLE_KIND_TENSOR && input.field != nullptr) {
      auto* fields = std::get_if<Fields>(&values.try_emplace(name, Fields()).first->second);
      if (fields == nullptr || !fields->emplace(input.field, input.tensor).second)
        throw twice(input.name);
    } else if (!values.emplace(name, value_of(input)).second) {
      throw twice(input.name);
    }
  }
  all_.clear();
  return values;
}

}  // namespace heddle
