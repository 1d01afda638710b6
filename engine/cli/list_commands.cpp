// nodes, devices and plugins: what there is, as a table for people or as JSON for programs.
#include <algorithm>
#include <cstdio>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Json;

std::string text_of(const Json& json, std::string_view key) {
  const Json* found = json.find(key);
  return found != nullptr && found->is_string() ? found->as_string() : std::string();
}

// What may be given: "0 to 100", "one of euler, heun, ...", and the default.
std::string describe_options(const Json& declaration) {
  std::string text;
  if (!declaration.is_array() || declaration.size() == 0) return text;
  const Json& type = declaration.at(std::size_t{0});
  if (type.is_array()) {
    std::vector<std::string> names;
    for (const Json& choice : type.as_array())
      names.push_back(choice.is_string() ? choice.as_string() : engine::write_json(choice));
    text = names.empty() ? "nothing to choose from" : cat("one of ", engine::join(names, ", "));
  }
  if (declaration.size() < 2) return text;
  const Json& options = declaration.at(std::size_t{1});
  const Json *min = options.find("min"), *max = options.find("max");
  if (min != nullptr && max != nullptr)
    text += cat(engine::write_json(*min), " to ", engine::write_json(*max));
  if (const Json* standard = options.find("default"))
    text += cat(text.empty() ? "" : "; ", "default ", engine::write_json(*standard));
  return text;
}

std::string type_name(const Json& declaration) {
  const bool wrapped = declaration.is_array() && declaration.size() > 0;
  const Json& type = wrapped ? declaration.at(std::size_t{0}) : declaration;
  return type.is_string() ? type.as_string() : "choice";
}

std::string describe_class(const Json::Member& node) {
  const Json& info = node.value;
  std::string text = engine::printable(node.key);
  if (const std::string title = text_of(info, "display_name"); title != node.key)
    text += cat(" (", engine::printable(title), ")");
  text += cat("\n", text_of(info, "description"), "\n");
  if (text.ends_with("\n\n")) text.pop_back();
  Table table;
  if (const Json* sections = info.find("input"); sections != nullptr && sections->is_object()) {
    for (const Json::Member& section : sections->members()) {
      if (!section.value.is_object()) continue;
      for (const Json::Member& input : section.value.members())
        table.row({cat("  ", input.key), type_name(input.value),
                   section.key == "required" ? "" : section.key, describe_options(input.value)});
    }
  }
  text += cat("inputs\n", table.text(), "outputs\n");
  const Json *types = info.find("output"), *names = info.find("output_name");
  Table outputs;
  for (std::size_t i = 0; types != nullptr && i < types->size(); ++i) {
    const bool named = names != nullptr && i < names->size() && names->at(i).is_string();
    outputs.row({cat("  ", named ? names->at(i).as_string() : cat(i)), type_name(types->at(i))});
  }
  return text + outputs.text();
}

Json strings(const std::vector<std::string>& texts) {
  Json array = Json::array();
  for (const std::string& text : texts) array.push(text);
  return array;
}

// A line for each that holds something.
void add_held(Table& table, const std::string& id, const MemoryReport& memory) {
  table.row({id, memory.budget == 0 ? "-" : engine::format_bytes(memory.budget),
             engine::format_bytes(memory.headroom), engine::format_bytes(memory.taken),
             engine::format_bytes(memory.available), ""});
  for (const MemoryUsage& part : memory.held)
    table.row(
        {"", "", "", engine::format_bytes(part.bytes), "",
         cat(part.kind, part.owner.empty() ? "" : " of ", part.owner,
             part.pinned == 0 ? "" : cat(", ", engine::format_bytes(part.pinned), " in use"))});
}

// "direct 16.0 GB/s"; "-" for a speed that is not known. What is the same, or goes through the
// host, has no speed of its own.
std::string link_text(const DeviceLink& link) {
  if (link.kind != "direct" && link.bytes_per_second <= 0) return link.kind;
  char speed[64] = "-";
  if (link.bytes_per_second > 0)
    std::snprintf(speed, sizeof speed, "%.1f GB/s", link.bytes_per_second / 1e9);
  return cat(link.kind, " ", speed);
}

// From the device of the row to that of the column.
std::string link_table(const std::vector<DeviceInfo>& devices) {
  constexpr std::size_t kWidest = 16;
  if (devices.size() > kWidest)
    return cat("links of ", devices.size(), " devices: --json tells them, a table is for up to ",
               kWidest, "\n");
  Table table;
  std::vector<std::string> header{"link to"};
  for (const DeviceInfo& device : devices) header.push_back(device.id);
  header.push_back("host");
  table.row(header);
  for (const DeviceInfo& device : devices) {
    std::vector<std::string> row{device.id};
    for (const std::string& to : std::vector(header.begin() + 1, header.end())) {
      const auto link = std::ranges::find(device.links, to, &DeviceLink::to);
      row.push_back(link == device.links.end() ? "" : link_text(*link));
    }
    table.row(std::move(row));
  }
  return table.text();
}

Json plugin_json(const PluginInfo& plugin) {
  Json json = Json::object();
  json.set("id", plugin.id).set("version", plugin.version).set("path", plugin.path);
  Json brings = Json::object();
  for (const PluginInfo::Kind& kind : plugin.brings) brings.set(kind.name, strings(kind.items));
  json.set("brings", std::move(brings));
  if (!plugin.refused.empty()) json.set("refused", plugin.refused);
  return json;
}

}  // namespace

int list_nodes(const Request& request, Output& output) {
  const Engine engine(request.settings.engine);
  const std::string info = engine.object_info(request.class_type);
  if (request.settings.json) {
    output.write(cat(info, "\n"));
    return kExitDone;
  }
  const Json classes = engine::parse_json(info, "object_info");
  if (!request.class_type.empty()) {
    for (const Json::Member& node : classes.members()) output.write(describe_class(node));
    return kExitDone;
  }
  Table table;
  for (const Json::Member& node : classes.members())
    table.row({node.key, text_of(node.value, "category"), text_of(node.value, "display_name")});
  output.write(table.text());
  return kExitDone;
}

namespace {

// "healthy"; what somebody wants of the device counts for more than how it is.
std::string state_text(const DeviceInfo& device) {
  if (device.service != "enabled") return device.service;
  return device.has_context ? device.state : cat(device.state, ", idle");
}

std::string name_text(const DeviceInfo& device) {
  if (!device.trouble.empty()) return device.trouble;
  return cat(device.name, device.integrated ? " (integrated)" : "");
}

// How else devices may be named, what they are, and what they lack.
std::string identity_table(const std::vector<DeviceInfo>& devices) {
  Table table;
  table.row({"device", "uuid", "pci address", "architecture"});
  bool any = false;
  const auto or_none = [](const std::string& text) { return text.empty() ? "-" : text; };
  std::string fallbacks;
  for (const DeviceInfo& device : devices) {
    any =
        any || !device.uuid.empty() || !device.pci_address.empty() || !device.architecture.empty();
    table.row({device.id, or_none(device.uuid), or_none(device.pci_address),
               or_none(device.architecture)});
    for (const std::string& line : device.fallbacks) fallbacks += cat(device.id, ": ", line, "\n");
  }
  if (!any) return fallbacks;
  return cat(table.text(), fallbacks.empty() ? "" : "\n", fallbacks);
}

}  // namespace

int list_devices(const Request& request, Output& output) {
  if (!request.operands.empty())
    throw engine::Error(engine::Code::invalid_argument,
                        cat("heddle devices ", request.operands.front(),
                            ": changes the devices of a server. Name it with --server URL."));
  const Engine engine(request.settings.engine);
  if (request.settings.json) {
    output.write(cat(engine.devices_json(), "\n"));
    return kExitDone;
  }
  Table table;
  table.row(
      {"id", "kind", "compute", "threads", "memory", "free", "ours", "others", "state", "name"});
  const std::vector<DeviceInfo> devices = engine.devices();
  for (const DeviceInfo& device : devices)
    table.row({device.id, device.kind, device.compute,
               device.threads == 0 ? "-" : cat(device.threads),
               engine::format_bytes(device.memory_total), engine::format_bytes(device.memory_free),
               engine::format_bytes(device.memory_ours), engine::format_bytes(device.memory_others),
               state_text(device), name_text(device)});
  Table memory;
  memory.row({"memory of", "budget", "left free", "taken", "available", "by"});
  for (const DeviceInfo& device : devices) add_held(memory, device.id, device.memory);
  add_held(memory, "host", engine.host_memory());
  const std::string identities = identity_table(devices);
  output.write(cat(table.text(), "\n", identities, identities.empty() ? "" : "\n", memory.text(),
                   "\n", link_table(devices)));
  return kExitDone;
}

int list_plugins(const Request& request, Output& output) {
  const Engine engine(request.settings.engine);
  if (request.settings.json) {
    Json plugins = Json::array();
    for (const PluginInfo& plugin : engine.plugins()) plugins.push(plugin_json(plugin));
    output.write(cat(engine::write_json(plugins), "\n"));
    return kExitDone;
  }
  for (const PluginInfo& plugin : engine.plugins()) {
    if (!plugin.refused.empty()) {
      output.write(cat(engine::printable(cat(plugin.path, ": refused: ", plugin.refused)), "\n"));
      continue;
    }
    output.write(
        cat(engine::printable(cat(plugin.id, " ", plugin.version, "  ", plugin.path)), "\n"));
    for (const PluginInfo::Kind& kind : plugin.brings)
      output.write(cat("  ",
                       engine::printable(cat(kind.name, " (", kind.items.size(),
                                             "): ", engine::join(kind.items, ", "))),
                       "\n"));
  }
  return kExitDone;
}

}  // namespace heddle::cli
