// Options, out of dicts that the package has filled with values of the right types. A key that is
// not known is an error.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "engine.h"
#include "tensor.h"

namespace heddle_python {

namespace {

[[noreturn]] void refuse(const std::string& what) { throw nb::type_error(what.c_str()); }

heddle::Fidelity fidelity_of(const std::string& name) {
  if (name == "exact") return heddle::Fidelity::exact;
  if (name == "rounding") return heddle::Fidelity::rounding;
  throw heddle::EngineError(1, {}, "fidelity is '" + name + "': give 'exact' or 'rounding'");
}

// Bytes, or a float for a share.
heddle::MemorySize size_of(nb::handle value) {
  if (PyFloat_Check(value.ptr()) != 0) return heddle::MemorySize::of_all(nb::cast<double>(value));
  return {nb::cast<std::uint64_t>(value)};
}

std::map<std::string, heddle::MemorySize> sizes_of(nb::handle value) {
  std::map<std::string, heddle::MemorySize> sizes;
  for (const auto [device, size] : nb::borrow<nb::dict>(value))
    sizes[nb::cast<std::string>(device)] = size_of(size);
  return sizes;
}

const char* name_of(heddle::Event::Kind kind) {
  using Kind = heddle::Event::Kind;
  switch (kind) {
    case Kind::node_started:
      return "node_started";
    case Kind::node_progress:
      return "node_progress";
    case Kind::node_done:
      return "node_done";
    case Kind::node_cached:
      return "node_cached";
    case Kind::file_written:
      return "file_written";
    case Kind::warning:
      return "warning";
    case Kind::node_waiting:
      return "node_waiting";
    case Kind::preview:
      return "preview";
    case Kind::node_shows:
      return "node_shows";
    case Kind::node_blocked:
      return "node_blocked";
    case Kind::run_waiting:
      return "run_waiting";
    case Kind::checkpoint_written:
      return "checkpoint_written";
    case Kind::picture_sent:
      return "picture_sent";
  }
  return "other";
}

void tell(Callback& observer, const heddle::Event& e) {
  const nb::gil_scoped_acquire locked;
  observer.call([&] {
    const bool is_picture = e.kind == heddle::Event::Kind::picture_sent;
    nb::object preview = nb::none();
    if (e.preview != nullptr)
      preview =
          nb::make_tuple(picture_tensor(e.preview->pixels, e.preview->width, e.preview->height),
                         e.preview->step, e.preview->step_count);
    return nb::make_tuple(
        name_of(e.kind), text_of(e.node), text_of(e.class_type), text_of(e.title),
        text_of(e.device), e.fraction, e.seconds, text_of(is_picture ? "" : e.text), e.run, preview,
        text_of(e.display_node), text_of(e.parent_node), text_of(e.real_node),
        is_picture ? nb::bytes(e.text.data(), e.text.size()) : nb::bytes("", 0), e.bytes);
  });
}

void set_log(heddle::EngineOptions& o, nb::handle function, std::shared_ptr<Callback>& log) {
  log = std::make_shared<Callback>(nb::borrow(function));
  o.log = [log](int level, std::string_view message) {
    const nb::gil_scoped_acquire locked;
    log->call([&] { return nb::make_tuple(level, text_of(message)); });
  };
}

// Those of memory. False: it is none of them.
bool set_memory(heddle::EngineOptions& o, const std::string& key, nb::handle value) {
  if (key == "budgets")
    o.budgets = sizes_of(value);
  else if (key == "reserves")
    o.reserves = sizes_of(value);
  else if (key == "host_budget")
    o.host_budget = size_of(value);
  else if (key == "host_floor")
    o.host_floor = size_of(value);
  else if (key == "pinned")
    o.pinned = size_of(value);
  else if (key == "cache_bytes")
    o.cache_bytes = nb::cast<std::uint64_t>(value);
  else if (key == "cache_dir")
    o.cache_dir = nb::cast<std::filesystem::path>(value);
  else if (key == "cache_dir_bytes")
    o.cache_dir_bytes = nb::cast<std::uint64_t>(value);
  else if (key == "idle_seconds")
    o.idle_seconds = nb::cast<double>(value);
  else
    return false;
  return true;
}

// Those of what runs in processes of its own. False: it is none of them.
bool set_isolation(heddle::Isolation& o, const std::string& key, nb::handle value) {
  if (key == "isolate")
    o.plugins = nb::cast<std::vector<std::string>>(value);
  else if (key == "isolate_timeout")
    o.call_seconds = nb::cast<double>(value);
  else if (key == "isolate_memory")
    o.memory_bytes = nb::cast<std::uint64_t>(value);
  else if (key == "isolate_sandbox")
    o.sandbox = nb::cast<bool>(value);
  else if (key == "python_nodes")
    o.python_nodes = nb::cast<std::vector<std::filesystem::path>>(value);
  else if (key == "python")
    o.python = nb::cast<std::filesystem::path>(value);
  else
    return false;
  return true;
}

}  // namespace

heddle::EngineOptions engine_options(const nb::dict& from, std::shared_ptr<Callback>& log) {
  using Paths = std::vector<std::filesystem::path>;
  using Words = std::map<std::string, std::string>;
  heddle::EngineOptions o;
  for (const auto [name, value] : from) {
    const auto key = nb::cast<std::string>(name);
    if (set_memory(o, key, value) || set_isolation(o.isolation, key, value)) continue;
    if (key == "plugins")
      o.plugin_dirs = nb::cast<Paths>(value);
    else if (key == "default_plugins")
      o.default_plugin_dir = nb::cast<std::filesystem::path>(value);
    else if (key == "models")
      o.model_dirs = nb::cast<Paths>(value);
    else if (key == "input")
      o.input_dir = nb::cast<std::filesystem::path>(value);
    else if (key == "output")
      o.output_dir = nb::cast<std::filesystem::path>(value);
    else if (key == "comfyui")
      o.comfyui_dir = nb::cast<std::filesystem::path>(value);
    else if (key == "devices")
      o.devices = nb::cast<std::vector<std::string>>(value);
    else if (key == "threads")
      o.threads = nb::cast<unsigned>(value);
    else if (key == "compute")
      o.compute = nb::cast<Words>(value);
    else if (key == "attention_dtype")
      o.attention_dtype = nb::cast<std::string>(value);
    else if (key == "linear_dtype")
      o.linear_dtype = nb::cast<std::string>(value);
    else if (key == "device_options")
      o.device_options = nb::cast<Words>(value);
    else if (key == "costs")
      o.costs = nb::cast<std::filesystem::path>(value);
    else if (key == "prompt_limit")
      o.prompt_limit = nb::cast<std::uint64_t>(value);
    else if (key == "fidelity")
      o.fidelity = fidelity_of(nb::cast<std::string>(value));
    else if (key == "log")
      set_log(o, value, log);
    else
      refuse("an engine has no option '" + key + "'");
  }
  return o;
}

heddle::StartOptions start_options(const nb::dict& from,
                                   const std::shared_ptr<Callback>& observer) {
  heddle::StartOptions o;
  for (const auto [name, value] : from) {
    const auto key = nb::cast<std::string>(name);
    if (key == "fetch")
      o.fetch = nb::cast<std::vector<std::string>>(value);
    else if (key == "writes_after")
      o.writes_after = nb::cast<std::uint64_t>(value);
    else if (key == "among_many")
      o.among_many = nb::cast<bool>(value);
    else if (key == "partly")
      o.partly = nb::cast<bool>(value);
    else if (key == "anew")
      o.anew = nb::cast<bool>(value);
    else if (key == "priority")
      o.priority = nb::cast<int>(value);
    else if (key == "memory_wait_seconds")
      o.memory_wait_seconds = nb::cast<double>(value);
    else if (key == "trace")
      o.trace = nb::cast<std::filesystem::path>(value);
    else if (key == "checkpoint")
      o.checkpoint = nb::cast<std::filesystem::path>(value);
    else if (key == "checkpoint_every")
      o.checkpoint_every = nb::cast<unsigned>(value);
    else if (key == "checkpoint_note")
      o.checkpoint_note = nb::cast<std::string>(value);
    else if (key == "keeps_checkpoint")
      o.keeps_checkpoint = nb::cast<bool>(value);
    else if (key == "fidelity")
      o.fidelity = fidelity_of(nb::cast<std::string>(value));
    else if (key == "previews") {
      const auto method = heddle::preview_method_named(nb::cast<std::string>(value));
      if (!method)
        throw heddle::EngineError(1, {},
                                  "previews is '" + nb::cast<std::string>(value) +
                                      "': give 'none', 'auto', 'latent2rgb' or 'taesd'");
      o.previews = *method;
    } else if (key != "on_event") {
      refuse("a run has no option '" + key + "'");
    }
  }
  if (observer != nullptr)
    o.observer = [observer](const heddle::Event& event) { tell(*observer, event); };
  return o;
}

}  // namespace heddle_python
