#include "engine/graph/saved_instances.h"

#include <algorithm>

#include "engine/base/text.h"

namespace heddle::engine {
namespace {

constexpr std::size_t kMostNodes = 200'000;  // of the flattened workflow
constexpr std::size_t kDeepest = 100;        // subgraphs inside of each other

// As ids of subgraphs are: 8-4-4-4-12 hexadecimal digits.
bool looks_like_uuid(std::string_view type) {
  if (type.size() != 36) return false;
  for (std::size_t i = 0; i < type.size(); ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    const bool is_digit =
        std::string_view("0123456789abcdefABCDEF").find(type[i]) != std::string_view::npos;
    if (is_dash ? type[i] != '-' : !is_digit) return false;
  }
  return true;
}

class Tree {
 public:
  Tree(const SavedWorkflow& workflow, std::vector<SavedProblem>& problems)
      : workflow_(workflow), problems_(problems) {}

  std::deque<SavedInstance> grow() {
    instances_.push_back({&workflow_.root(), nullptr, nullptr, "", {}});
    for (std::size_t i = 0; i < instances_.size() && node_count_ <= kMostNodes; ++i)
      add_children(instances_[i]);
    if (node_count_ > kMostNodes)
      problems_.push_back({0, 0, cat("its subgraphs make more than ", kMostNodes, " nodes.")});
    return std::move(instances_);
  }

 private:
  void add_children(SavedInstance& instance) {
    node_count_ += instance.graph->nodes.size();
    if (node_count_ > kMostNodes) return;
    for (const SavedNode& node : instance.graph->nodes) {
      if (node.mode != SavedMode::always) continue;
      const SavedGraph* definition = workflow_.definition(node.type);
      if (definition == nullptr) {
        if (looks_like_uuid(node.type))
          report(node,
                 "the file has no definition of its subgraph. Save the workflow again in "
                 "ComfyUI.");
        continue;
      }
      if (contains(instance, *definition)) {
        report(node, cat("the subgraph ", quote(definition->name), " contains itself."));
        continue;
      }
      instances_.push_back({definition, &instance, &node, instance.id_of(node) + ":", {}});
      instance.children.emplace(&node, &instances_.back());
    }
  }

  bool contains(const SavedInstance& instance, const SavedGraph& definition) const {
    std::size_t depth = 0;
    for (const SavedInstance* at = &instance; at != nullptr; at = at->parent)
      if (at->graph == &definition || ++depth > kDeepest) return true;
    return false;
  }

  void report(const SavedNode& node, std::string_view what) {
    problems_.push_back({node.json->line(), node.json->column(), cat(shown(node), ": ", what)});
  }

  const SavedWorkflow& workflow_;
  std::vector<SavedProblem>& problems_;
  std::deque<SavedInstance> instances_;
  std::size_t node_count_ = 0;
};

}  // namespace

std::deque<SavedInstance> saved_instances(const SavedWorkflow& workflow,
                                          std::vector<SavedProblem>& problems) {
  return Tree(workflow, problems).grow();
}

std::vector<const SavedNode*> execution_order(const SavedGraph& graph) {
  struct Reader {
    std::size_t slot;
    const SavedNode* node;
  };
  std::unordered_map<const SavedNode*, std::size_t> missing;
  std::unordered_map<const SavedNode*, std::vector<Reader>> readers;
  for (const std::string& id : graph.link_order) {
    const SavedLink& link = graph.links.at(id);
    const SavedNode* from = graph.find(link.origin);
    const SavedNode* to = graph.find(link.target);
    const bool is_used = from != nullptr && to != nullptr &&
                         std::ranges::find(to->inputs, id, &SavedSlot::link) != to->inputs.end();
    if (!is_used) continue;
    ++missing[to];
    readers[from].push_back({link.origin_slot, to});
  }
  for (auto& [node, list] : readers) std::ranges::stable_sort(list, {}, &Reader::slot);
  std::vector<const SavedNode*> order;
  for (const SavedNode& node : graph.nodes)
    if (missing.find(&node) == missing.end()) order.push_back(&node);
  for (std::size_t i = 0; i < order.size(); ++i)
    if (const auto list = readers.find(order[i]); list != readers.end())
      for (const Reader& reader : list->second)
        if (--missing[reader.node] == 0) order.push_back(reader.node);
  for (const SavedNode& node : graph.nodes)
    if (const auto left = missing.find(&node); left != missing.end() && left->second > 0)
      order.push_back(&node);
  return order;
}

}  // namespace heddle::engine
