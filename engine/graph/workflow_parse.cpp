#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/graph/parallel_names.h"
#include "engine/graph/workflow_json.h"
#include "engine/graph/workflow_keys.h"

namespace heddle::engine {
namespace {

using Keys = std::vector<std::string_view>;

template <std::size_t kCount>
Keys keys_of(const std::array<std::string_view, kCount>& keys) {
  return Keys(keys.begin(), keys.end());
}

const Keys kTopKeys = keys_of(kWorkflowKeys), kKeysOfNodes = keys_of(kNodeKeys);

bool is_foreign(std::string_view key) {
  return std::ranges::find(kForeignKeys, key) != kForeignKeys.end();
}

// Where a fault is: "node '4': input ". Made into text only when there is a fault.
struct Where {
  std::string_view kind;         // "node "
  std::string_view name;         // "4"
  std::string_view detail = "";  // "input "
  std::string operator()() const {
    return name.data() == nullptr ? std::string(kind) : cat(kind, quote(name), ": ", detail);
  }
};

constexpr std::size_t kMostGuesses =
    32;  // guesses at misspelt names cost time; a broken text may hold very many

// Nodes are read while the text is: each as soon as it is complete, and its JSON is freed at once.
// That works for workflows in which nothing is wrong and nothing doubtful; others are read once
// more, as a whole, so that what is said of them does not depend on the order of the text.
class Parser {
 public:
  explicit Parser(std::string_view name) { workflow_.name = name; }

  // Nothing: it has to be read as a whole.
  std::optional<Workflow> parse_by_nodes(std::string_view text) {
    workflow_.nodes.reserve(std::min(text.size() / kFewBytes, kManyNodes));
    const Json rest = parse_json(text, workflow_.name,
                                 [this](std::string_view around, const Json::Member& member) {
                                   return take(around, member);
                                 });
    if (!is_plain_ || !problems_.empty() || !rest.is_object() || is_ui_format(rest)) return {};
    if (is_wrapped(rest) != is_prompt_) return {};
    const Json* nodes = is_prompt_ ? rest.find("prompt") : &rest;
    if (nodes->size() != workflow_.nodes.size() || is_ui_format(*nodes)) return {};
    if (is_prompt_) parse_wrapped(rest);
    return problems_.empty() ? std::optional(std::move(workflow_)) : std::nullopt;
  }

  Workflow parse(const Json& json) {
    if (!json.is_object()) {
      report(json.line(), json.column(),
             cat("expected a workflow (an object of nodes), got ", json.describe(), "."));
    } else if (is_ui_format(json)) {
      report(json.line(), json.column(),
             "this is a workflow as the editor saves it (\"nodes\" and \"links\"), which does not "
             "say what each input is. "
             "Export it in API format: in ComfyUI, Workflow > Export (API).");
    } else if (is_wrapped(json)) {
      parse_wrapped(json);
    } else {
      parse_nodes(json);
    }
    if (!problems_.empty())
      throw Error(Code::invalid_argument, join(clip_lines(std::move(problems_)), "\n"));
    return std::move(workflow_);
  }

 private:
  static constexpr std::size_t kFewBytes = 64;  // of text, for a node
  static constexpr std::size_t kManyNodes = 16'384;

  // A node at the top, or in "prompt". A key that is there twice is doubtful, and so is a workflow
  // with nodes on both levels.
  bool take(std::string_view around, const Json::Member& member) {
    const bool is_inside = around.data() != nullptr;
    const bool is_candidate =
        is_inside ? around == "prompt"
                  : std::ranges::find(kWorkflowKeys, member.key) == kWorkflowKeys.end();
    if (!is_plain_ || !is_candidate || !is_node(&member.value)) return false;
    is_plain_ = !member.repeated && (workflow_.nodes.empty() || is_inside == is_prompt_);
    if (!is_plain_) return false;
    is_prompt_ = is_inside;
    parse_node(member);
    is_plain_ = problems_.empty();
    return true;
  }

  void report(std::uint32_t line, std::uint32_t column, std::string_view what) {
    problems_.push_back(cat(workflow_.name, ":", line, ":", column, ": ", what));
  }
  void report(const Json& at, std::string_view what) { report(at.line(), at.column(), what); }
  void report(const Json::Member& at, std::string_view what) { report(at.line, at.column, what); }

  // A repeated key is taken for a slip, though Python takes the last one: half of it would be lost
  // without a word.
  void refuse_repeated(const Json::Member& member, const Where& where) {
    if (member.repeated)
      report(member, cat(where(), quote(member.key),
                         " is there more than once. Remove or rename all but one."));
  }

  std::string guess(std::string_view name, const Keys& keys) {
    return guesses_++ < kMostGuesses ? did_you_mean(name, keys) : "";
  }

  // Reports a key that is nearly one of ours. Others are kept for whoever knows them.
  void keep_or_report(const Json::Member& member, const Keys& keys, const Where& where,
                      Json& rest) {
    const std::string meant = is_foreign(member.key) ? "" : guess(member.key, keys);
    if (!meant.empty())
      return report(member, cat(where(), "there is no key ", quote(member.key), ".", meant));
    if (rest.is_null()) rest = Json::object();
    rest.set(member.key, member.value);
  }

  static bool is_node(const Json* json) {
    return json != nullptr && json->find("class_type") != nullptr;
  }

  static bool is_ui_format(const Json& json) {
    const Json* nodes = json.find("nodes");
    return nodes != nullptr && nodes->is_array() &&
           (json.find("links") != nullptr || json.find("last_node_id") != nullptr ||
            json.size() == 1);
  }

  // A bare map of nodes may have nodes with the ids "prompt" and "devices".
  static bool is_wrapped(const Json& json) {
    for (const std::string_view key : kTopKeys)
      if (const Json* member = json.find(key))
        return !is_node(member) || member->find("class_type")->is_object();
    return false;
  }

  void parse_wrapped(const Json& json) {
    for (const Json::Member& member : json.members()) {
      refuse_repeated(member, {});
      if (member.key == "devices") {
        parse_devices(member.value);
      } else if (member.key == "prompt") {
        if (member.value.is_object() && is_ui_format(member.value)) {
          report(member.value,
                 "\"prompt\" holds a workflow as the editor saves it. Export it in API format.");
        } else if (member.value.is_object() && !is_prompt_) {
          parse_nodes(member.value);
        } else if (!member.value.is_object()) {
          report(member.value,
                 cat("\"prompt\" needs an object of nodes, got ", member.value.describe(), "."));
        }
      } else {
        keep_or_report(member, kTopKeys, {}, workflow_.rest);
      }
    }
    if (json.find("prompt") == nullptr)
      report(json,
             "there is no \"prompt\" beside the other keys. Put the nodes there: {\"devices\": "
             "..., \"prompt\": {nodes}}.");
  }

  void parse_devices(const Json& json) {
    if (!json.is_object())
      return report(json,
                    cat("\"devices\" needs an object {\"cuda:0\": {\"budget\": \"14GiB\"}}, got ",
                        json.describe(), "."));
    for (const Json::Member& member : json.members()) {
      const Where where{"device ", member.key};
      refuse_repeated(member, {"device ", {}});
      DeviceHint hint{member.key, std::nullopt};
      if (!member.value.is_object()) {
        report(member.value,
               cat(where(), "expected an object such as {\"budget\": \"14GiB\"}, got ",
                   member.value.describe(), "."));
        continue;
      }
      for (const Json::Member& key : member.value.members()) {
        refuse_repeated(key, where);
        if (key.key != "budget") {
          report(key, cat(where(), "there is no key ", quote(key.key), ".",
                          guess(key.key, keys_of(kDeviceKeys)), " A device has \"budget\"."));
        } else if (!(hint.budget_bytes = bytes_of(key.value))) {
          report(
              key.value,
              cat(where(), "\"budget\" needs a size such as \"14GiB\" or a number of bytes, got ",
                  key.value.describe(), "."));
        }
      }
      workflow_.devices.push_back(std::move(hint));
    }
  }

  static std::optional<std::uint64_t> bytes_of(const Json& json) {
    if (json.is_string()) return parse_bytes(json.as_string());
    const bool negative = json.kind() == Json::Kind::integer && json.as_int64() < 0;
    if (!json.is_integer() || negative) return std::nullopt;
    return json.as_uint64();
  }

  void parse_nodes(const Json& nodes) {
    workflow_.nodes.reserve(nodes.size());
    for (const Json::Member& member : nodes.members()) {
      refuse_repeated(member, {"node ", {}});
      parse_node(member);
    }
  }

  void parse_node(const Json::Member& member) {
    const Where where{"node ", member.key};
    const Json& json = member.value;
    if (!json.is_object()) {
      const std::string meant = guess(member.key, kTopKeys);
      return report(json,
                    cat(where(), "expected an object with \"class_type\" and \"inputs\", got ",
                        json.describe(), ".", meant));
    }
    WorkflowNode& node = workflow_.nodes.emplace_back();
    node.id = member.key;
    node.line = member.line;
    node.column = member.column;
    for (const Json::Member& key : json.members()) {
      refuse_repeated(key, where);
      parse_node_key(key, where, node);
    }
    if (json.find("class_type") == nullptr) {
      const std::string meant = guess(member.key, kTopKeys);
      report(member,
             cat(where(), "it has no \"class_type\".", meant, " Give the name of a node class."));
    }
  }

  void parse_node_key(const Json::Member& key, const Where& where, WorkflowNode& node) {
    if (key.key == "class_type") {
      node.class_type = text_of(key, where);
    } else if (key.key == "inputs") {
      parse_inputs(key.value, where, node);
    } else if (key.key == "device") {
      node.hints.device = text_of(key, where);
    } else if (key.key == "prefer") {
      node.hints.prefer = text_of(key, where);
    } else if (key.key == "parallel") {
      parse_split(key, where, node.hints);
    } else if (key.key == "blocks") {
      parse_blocks(key.value, where, node.hints);
    } else {
      keep_or_report(key, kKeysOfNodes, where, node.rest);
      const Json* title = key.key == "_meta" ? key.value.find("title") : nullptr;
      if (title != nullptr && title->is_string()) node.title = title->as_string();
    }
  }

  std::string text_of(const Json::Member& key, const Where& where) {
    if (key.value.is_string() && !key.value.as_string().empty()) return key.value.as_string();
    report(key.value,
           cat(where(), quote(key.key), " needs a name as text, got ", key.value.describe(), "."));
    return "";
  }

  void parse_split(const Json::Member& key, const Where& where, Hints& hints) {
    const std::string mode = text_of(key, where);
    const std::optional<std::string> known = canonical_parallel(mode);
    if (known || mode.empty()) {
      hints.parallel = known.value_or("");
      return;
    }
    report(key.value, cat(where(), "there is no parallel mode ", quote(mode), ".",
                          parallel_advice(mode), "."));
  }

  void parse_blocks(const Json& json, const Where& where, Hints& hints) {
    if (!json.is_array())
      return report(json, cat(where(),
                              "\"blocks\" needs an array of {\"match\": \"double.*\", \"device\": "
                              "\"cuda:0\"}, got ",
                              json.describe(), "."));
    for (const Json& entry : json.as_array()) {
      BlockHint hint;
      if (!entry.is_object()) {
        report(entry,
               cat(where(),
                   "an entry of \"blocks\" needs an object with \"match\" and \"device\", got ",
                   entry.describe(), "."));
        continue;
      }
      for (const Json::Member& key : entry.members()) {
        refuse_repeated(key, where);
        if (key.key == "match") {
          hint.match = text_of(key, where);
        } else if (key.key == "device") {
          hint.device = text_of(key, where);
        } else {
          report(key,
                 cat(where(), "an entry of \"blocks\" has no key ", quote(key.key), ".",
                     guess(key.key, keys_of(kBlockKeys)), " It has \"match\" and \"device\"."));
        }
      }
      for (const std::string_view needed : kBlockKeys)
        if (entry.find(needed) == nullptr)
          report(entry, cat(where(), "an entry of \"blocks\" lacks ", quote(needed), "."));
      hints.blocks.push_back(std::move(hint));
    }
  }

  void parse_inputs(const Json& json, const Where& where, WorkflowNode& node) {
    if (!json.is_object())
      return report(json, cat(where(), "\"inputs\" needs an object, got ", json.describe(), "."));
    node.inputs.reserve(json.size());
    for (const Json::Member& member : json.members()) {
      refuse_repeated(member, {where.kind, where.name, "input "});
      WorkflowInput& input = node.inputs.emplace_back();
      input.name = member.key;
      input.line = member.value.line();
      input.column = member.value.column();
      if (!member.value.is_array()) {
        const Json* wrapped = member.value.find("__value__");
        input.value.emplace<Json>(wrapped == nullptr ? member.value : *wrapped);
      } else if (std::optional<Link> link = link_of(member.value)) {
        input.value = *std::move(link);
      } else {  // bind() says what is wrong with it, as other outputs may run all the same
        input.value.emplace<Json>(member.value);
        input.is_bad_link = true;
      }
    }
  }

  Workflow workflow_{"", {}, {}, Json::object()};
  bool is_plain_ = true;    // nothing doubtful was seen while nodes were taken
  bool is_prompt_ = false;  // the nodes that were taken stood in "prompt"
  std::vector<std::string> problems_;
  std::size_t guesses_ = 0;
};

}  // namespace

Workflow parse_workflow(std::string_view text, std::string_view name) {
  std::optional<Workflow> workflow = Parser(name).parse_by_nodes(text);
  if (!workflow) return workflow_of(parse_json(text, name), name);
  workflow->models = model_addresses(workflow->rest);
  return *std::move(workflow);
}

Workflow workflow_of(const Json& json, std::string_view name) {
  Workflow workflow = Parser(name).parse(json);
  workflow.models = model_addresses(json);
  return workflow;
}

}  // namespace heddle::engine
