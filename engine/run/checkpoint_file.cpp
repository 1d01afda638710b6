#include "engine/run/checkpoint_file.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/files/value_file.h"

namespace heddle::engine {

namespace {

// Of the form below: another form has another name, by which it is refused.
constexpr std::string_view kForm = "heddle checkpoint 1";
constexpr FileKind kCheckpointFile{"a checkpoint", std::uint64_t{16} << 30};

using Fields = std::vector<std::pair<std::string, Value>>;

Value texts(const std::map<std::string, std::string>& map) {
  Fields fields;
  for (const auto& [key, text] : map) fields.emplace_back(key, make_value(text));
  return make_record(std::move(fields));
}

template <class Texts>
Value list_of_texts(const Texts& all) {
  List list;
  for (const std::string& text : all) list.items.push_back(make_value(text));
  return make_value(std::move(list));
}

Value number(std::size_t n) { return make_value(static_cast<std::int64_t>(n)); }

Value states_of(const SavedContent& saved) {
  List list;
  for (const auto& [call, state] : saved.states)
    list.items.push_back(make_record({{"node", make_value(call.node)},
                                      {"element", number(call.element)},
                                      {"ended", make_value(state.has_ended)},
                                      {"state", state.value}}));
  return make_value(std::move(list));
}

Value places_of(const SavedContent& saved) {
  List list;
  for (const auto& [node, place] : saved.places)
    list.items.push_back(make_record({{"node", make_value(node)},
                                      {"class", make_value(place.device_class)},
                                      {"parallel", make_value(place.parallel)},
                                      {"devices", make_value(place.devices)}}));
  return make_value(std::move(list));
}

// Of a node those outputs that are kept, by their numbers.
Value outputs_of(const SavedContent& saved) {
  List list;
  for (const auto& [node, outputs] : saved.outputs) {
    List ports, values;
    for (std::size_t port = 0; port < outputs.values.size(); ++port) {
      if (!outputs.values[port]) continue;
      ports.items.push_back(number(port));
      values.items.push_back(outputs.values[port]);
    }
    list.items.push_back(make_record({{"node", make_value(node)},
                                      {"count", number(outputs.values.size())},
                                      {"ports", make_value(std::move(ports))},
                                      {"values", make_value(std::move(values))}}));
  }
  return make_value(std::move(list));
}

Value given_of(const GivenValues& given) {
  List list;
  for (const auto& [input, value] : given)
    list.items.push_back(make_record({{"node", make_value(input.first)},
                                      {"input", make_value(input.second)},
                                      {"value", value}}));
  return make_value(std::move(list));
}

// ---- and back ----

const Value& field(const heddle_value& record, std::string_view key) {
  const auto* fields = std::get_if<Record>(&record.content);
  const Value* found = nullptr;
  if (fields != nullptr)
    for (const auto& [name, value] : fields->fields)
      if (name == key) found = &value;
  if (found == nullptr || !*found)
    throw Error(Code::invalid_argument, cat("it has no ", quote(key)));
  return *found;
}

const std::vector<Value>& items(const heddle_value& record, std::string_view key) {
  const auto* list = std::get_if<List>(&field(record, key)->content);
  if (list == nullptr) throw Error(Code::invalid_argument, cat(quote(key), " is no list"));
  return list->items;
}

std::string text(const heddle_value& record, std::string_view key) {
  return get_str(*field(record, key));
}

std::size_t count(const heddle_value& value, std::size_t most) {
  const std::uint64_t n = get_uint(value);
  if (n > most) throw Error(Code::invalid_argument, cat(n, " where ", most, " is the most"));
  return n;
}

std::map<std::string, std::string> map_of(const heddle_value& record, std::string_view key) {
  std::map<std::string, std::string> map;
  const auto* fields = std::get_if<Record>(&field(record, key)->content);
  if (fields == nullptr) throw Error(Code::invalid_argument, cat(quote(key), " is no record"));
  for (const auto& [name, value] : fields->fields) map[name] = get_str(*value);
  return map;
}

SavedContent saved_of(const heddle_value& all) {
  constexpr std::size_t kMostElements = 1 << 24, kMostPorts = 1 << 12;
  SavedContent saved;
  for (const Value& one : items(all, "states"))
    saved.states[{text(*one, "node"), count(*field(*one, "element"), kMostElements)}] = {
        {}, field(*one, "state"), get_bool(*field(*one, "ended"))};
  for (const Value& one : items(all, "outputs")) {
    std::vector<Value> values(count(*field(*one, "count"), kMostPorts));
    const std::vector<Value>&ports = items(*one, "ports"), &kept = items(*one, "values");
    if (ports.size() != kept.size() || ports.size() > values.size())
      throw Error(Code::invalid_argument, "outputs without numbers");
    for (std::size_t i = 0; i < ports.size(); ++i)
      values[count(*ports[i], values.size() - 1)] = kept[i];
    saved.outputs[text(*one, "node")] = {{}, std::move(values)};
  }
  for (const Value& one : items(all, "ended")) saved.ended.insert(get_str(*one));
  for (const Value& one : items(all, "places"))
    saved.places[text(*one, "node")] = {text(*one, "class"), text(*one, "parallel"),
                                        text(*one, "devices")};
  return saved;
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Code::invalid_argument,
              cat(what,
                  ", so the rest of the picture would not fit what is there. Go on with what "
                  "it was begun with, or run the workflow from its beginning"));
}

}  // namespace

std::string checkpoint_text(const CheckpointContent& content) {
  const Value all = make_record({{"workflow", make_value(content.workflow)},
                                 {"note", make_value(content.note)},
                                 {"given", given_of(content.given)},
                                 {"partly", make_value(content.partly)},
                                 {"builds", texts(content.builds)},
                                 {"made_of", texts(content.made_of)},
                                 {"places", places_of(content.saved)},
                                 {"states", states_of(content.saved)},
                                 {"outputs", outputs_of(content.saved)},
                                 {"ended", list_of_texts(content.saved.ended)},
                                 {"files", list_of_texts(content.files)},
                                 {"ui", texts(content.ui)}});
  std::optional<std::string> file = write_values(std::span(&all, 1), kForm);
  if (!file)
    throw Error(Code::unsupported,
                "a value that was given for this run cannot be kept in a checkpoint");
  return *std::move(file);
}

CheckpointContent parse_checkpoint(std::span<const std::byte> file, const std::string& name) {
  const std::vector<Value> values = read_values(file, kForm, name);
  try {
    if (values.size() != 1) throw Error(Code::invalid_argument, "it holds nothing");
    const heddle_value& all = *values.front();
    CheckpointContent content;
    content.workflow = text(all, "workflow");
    content.note = text(all, "note");
    for (const Value& one : items(all, "given"))
      content.given[{text(*one, "node"), text(*one, "input")}] = field(*one, "value");
    content.partly = get_bool(*field(all, "partly"));
    content.builds = map_of(all, "builds");
    content.made_of = map_of(all, "made_of");
    content.saved = saved_of(all);
    for (const Value& one : items(all, "files")) content.files.push_back(get_str(*one));
    content.ui = map_of(all, "ui");
    return content;
  } catch (const Error& error) {
    throw Error(Code::invalid_argument, cat(name, ": this is no checkpoint: ", error.what()));
  }
}

CheckpointContent read_checkpoint(const std::filesystem::path& path) {
  const std::string file = read_file(path, kCheckpointFile);
  return parse_checkpoint(std::as_bytes(std::span(file)), path.string());
}

void check_builds(const CheckpointContent& content, const std::map<std::string, std::string>& now) {
  for (const auto& [name, build] : content.builds) {
    const auto found = now.find(name);
    if (found == now.end()) refuse(cat(name, " has a part in this run, and is not here"));
    if (found->second != build) refuse(cat(name, " is another build than the run was begun with"));
  }
}

void check_made_of(const CheckpointContent& content, const Graph& graph,
                   std::span<const Hash128> now) {
  for (const NodeIndex n : graph.order) {
    const auto found = content.made_of.find(graph.nodes[n].id);
    if (found == content.made_of.end()) refuse(cat(graph.name_of(n), " was no part of the run"));
    if (found->second != hex(now[n]))
      refuse(cat(graph.name_of(n),
                 " is made of something else than when the run was begun: a file "
                 "that it reads, or its class"));
  }
}

}  // namespace heddle::engine
