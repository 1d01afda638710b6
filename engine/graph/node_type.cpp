#include "engine/graph/node_type.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

// Sizes of the first revision: a smaller desc was built against nothing that was ever released.
constexpr std::uint32_t kFirstNode = 128;
constexpr std::uint32_t kFirstPort = 40;
constexpr std::uint32_t kFirstWidget = 80;
constexpr std::uint32_t kFirstSlot = 24;
constexpr std::uint32_t kFirstValidator = 24;
static_assert(sizeof(heddle_node_desc) == kFirstNode + sizeof(void*) &&
              sizeof(heddle_validator) == kFirstValidator && sizeof(heddle_port) == kFirstPort &&
              sizeof(heddle_widget) == kFirstWidget && sizeof(heddle_slot) == kFirstSlot);

template <class T>
std::optional<std::uint32_t> position(const T* const* list, std::uint32_t count,
                                      std::string_view name) {
  for (std::uint32_t i = 0; i < count; ++i)
    if (list[i]->name == name) return i;
  return std::nullopt;
}

// Checks one desc; every fault names the plugin and the node type.
class DescChecker {
 public:
  DescChecker(const heddle_node_desc& desc, std::string_view plugin) : desc_(desc) {
    where_ = cat("plugin ", quote(plugin));
    if (desc.type != nullptr) where_ += cat(", node type ", quote(desc.type));
  }

  void check() const {
    if (desc_.type == nullptr || *desc_.type == '\0') fail("a node type has no name");
    if (desc_.execute == nullptr) fail("it has no execute function");
    check_list("input", desc_.inputs, desc_.input_count, [this](const heddle_port& port) {
      check_port("input", port);
      if (port.widget != nullptr) check_widget(port, *port.widget);
    });
    check_list("output", desc_.outputs, desc_.output_count,
               [this](const heddle_port& port) { check_port("output", port); });
    check_list("weight slot", desc_.weights, desc_.weight_count, [this](const heddle_slot& slot) {
      check_size("weight slot", slot.size, kFirstSlot);
    });
    if (desc_.validator != nullptr) check_validator(*desc_.validator);
  }

  [[noreturn]] void fail(std::string_view fault) const {
    throw Error(Code::invalid_argument,
                cat(where_, ": ", fault, ". Build the plugin again with this version's SDK."));
  }
  void check_size(std::string_view what, std::uint32_t size, std::uint32_t least) const {
    if (size >= least) return;
    fail(cat("the ", what, "'s desc has ", size, " bytes, the first revision has ", least));
  }

 private:
  template <class T, class Check>
  void check_list(std::string_view what, const T* const* list, std::uint32_t count,
                  Check check_one) const {
    if (count > 0 && list == nullptr)
      fail(cat("it counts ", count, " of ", what, " but has no list"));
    // Outputs of workflow nodes are linked by their numbers; a name means the first.
    const bool may_repeat = what == "output" && (desc_.flags & HEDDLE_NODE_BLOCK) == 0;
    std::unordered_set<std::string_view> names;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (list[i] == nullptr) fail(cat(what, " ", i, " is NULL"));
      check_one(*list[i]);
      if (list[i]->name == nullptr || *list[i]->name == '\0')
        fail(cat(what, " ", i, " has no name"));
      if (!names.insert(list[i]->name).second && !may_repeat)
        fail(cat("the name ", quote(list[i]->name), " stands for more than one ", what));
    }
  }
  void check_port(std::string_view what, const heddle_port& port) const {
    check_size(what, port.size, kFirstPort);
    if (port.type == nullptr || *port.type == '\0')
      fail(cat(what, " ", quote(port.name == nullptr ? "?" : port.name), " has no type"));
    if ((port.flags & HEDDLE_PORT_LIST) != 0 && (desc_.flags & HEDDLE_NODE_BLOCK) != 0)
      fail(cat(what, " ", quote(port.name == nullptr ? "?" : port.name),
               " is a list (HEDDLE_PORT_LIST), which blocks of a model cannot have"));
  }
  void check_widget(const heddle_port& port, const heddle_widget& widget) const {
    const std::string name = quote(port.name == nullptr ? "?" : port.name);
    check_size(cat("widget of input ", name), widget.size, kFirstWidget);
    const bool has_options_alone = widget.kind == 0 && widget.extra != nullptr;
    if (!has_options_alone &&
        (widget.kind < HEDDLE_WIDGET_INT || widget.kind > HEDDLE_WIDGET_FOLDER))
      fail(cat("the widget of input ", name, " has the unknown kind ", widget.kind));
    if (widget.extra == nullptr) return;
    try {
      if (parse_json(widget.extra, "extra").is_object()) return;
    } catch (const Error& error) {
      fail(cat("the widget of input ", name, " has faulty JSON in ", error.what()));
    }
    fail(cat("the widget of input ", name, " needs a JSON object as its extra"));
  }

  void check_validator(const heddle_validator& validator) const {
    check_size("validator", validator.size, kFirstValidator);
    if (validator.validate == nullptr) fail("its validator has no function");
    for (const char* const* name = validator.inputs; name != nullptr && *name != nullptr; ++name)
      if (!position(desc_.inputs, desc_.input_count, *name))
        fail(cat("its validator names the input ", quote(*name), ", which it does not have"));
  }

  const heddle_node_desc& desc_;
  std::string where_;
};

}  // namespace

NodeType::NodeType(const heddle_node_desc* desc, std::string plugin,
                   std::shared_ptr<const void> owner)
    : desc_{}, plugin_(std::move(plugin)), owner_(std::move(owner)) {
  if (desc == nullptr)
    throw Error(Code::invalid_argument,
                cat("plugin ", quote(plugin_), " lists a node type that is NULL"));
  // The size comes first: nothing else may be read before it is known to be there.
  if (desc->size < kFirstNode)
    DescChecker({}, plugin_).check_size("node type", desc->size, kFirstNode);
  std::memcpy(&desc_, desc, std::min<std::size_t>(desc->size, sizeof desc_));
  DescChecker(desc_, plugin_).check();
  Hasher hasher;
  hasher.add(name()).add(desc_.version).add(desc_.input_count);
  checks_.reserve(input_count());
  for (std::uint32_t i = 0; i < input_count(); ++i) {
    hasher.add(input(i).name);
    checks_.emplace_back(input(i), judges(input(i).name));
    knows_id_ = knows_id_ || ((input(i).flags & HEDDLE_PORT_HIDDEN) != 0 &&
                              std::string_view(input(i).type) == "UNIQUE_ID");
    takes_lists_ = takes_lists_ || (input(i).flags & HEDDLE_PORT_LIST) != 0;
  }
  for (std::uint32_t o = 0; o < output_count(); ++o)
    makes_lists_ = makes_lists_ || (output(o).flags & HEDDLE_PORT_LIST) != 0;
  identity_ = hasher.finish();
}

bool NodeType::judges(std::string_view input) const {
  if (desc_.validator == nullptr) return false;
  const char* const* name = desc_.validator->inputs;
  if (name == nullptr) return true;
  while (*name != nullptr && *name != input) ++name;
  return *name != nullptr;
}

std::optional<std::uint32_t> NodeType::find_input(std::string_view name) const {
  return position(desc_.inputs, desc_.input_count, name);
}

std::optional<std::uint32_t> NodeType::find_output(std::string_view name) const {
  return position(desc_.outputs, desc_.output_count, name);
}

std::optional<std::uint32_t> NodeType::find_slot(std::string_view name) const {
  return position(desc_.weights, desc_.weight_count, name);
}

}  // namespace heddle::engine
