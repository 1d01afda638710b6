#include "engine/graph/loops.h"

#include <algorithm>
#include <deque>
#include <map>

#include "engine/base/text.h"

namespace heddle::engine {

namespace {

bool has_flag(const Node& node, std::uint32_t flag) {
  return node.type != nullptr && node.type->has(flag);
}

class LoopBinder {
 public:
  LoopBinder(Graph& graph, std::vector<bool>& is_body) : graph_(graph), is_body_(is_body) {
    for (NodeIndex n = 0; n < graph.nodes.size(); ++n) {
      if (has_flag(graph.nodes[n], HEDDLE_NODE_LOOP_START)) starts_.push_back(n);
      if (has_flag(graph.nodes[n], HEDDLE_NODE_LOOP_END)) ends_.push_back(n);
    }
  }
  bool has_any() const { return !starts_.empty() || !ends_.empty(); }

  std::vector<LoopFault> run() {
    pair();
    if (!faults_.empty()) return std::move(faults_);
    // Inner ones first: they are no longer there when the outer one is bound.
    std::ranges::stable_sort(pairs_, {}, [](const Pair& p) { return p.distance; });
    for (const Pair& pair : pairs_) bind(pair);
    return std::move(faults_);
  }

 private:
  struct Pair {
    NodeIndex start, end;
    std::size_t distance;
  };

  // Distances, against the links, of all that a node needs.
  std::map<NodeIndex, std::size_t> upstream(NodeIndex of) const {
    std::map<NodeIndex, std::size_t> found{{of, 0}};
    std::deque<NodeIndex> open{of};
    while (!open.empty()) {
      const NodeIndex n = open.front();
      open.pop_front();
      for_each_binding(graph_.nodes[n], [&](const Binding& binding) {
        const auto* link = std::get_if<Source>(&binding);
        if (link != nullptr && found.emplace(link->node, found[n] + 1).second)
          open.push_back(link->node);
      });
    }
    return found;
  }

  void fault(std::string type, std::string text, std::vector<NodeIndex> nodes,
             std::vector<NodeIndex> ends) {
    faults_.push_back({std::move(type), std::move(text), std::move(nodes), std::move(ends)});
  }
  std::string shown(NodeIndex n) const { return graph_.name_of(n); }

  // Of pairs that are equally close, what stands within another is the inner one.
  void drop_outer(std::vector<Pair>& best) const {
    const std::vector<Pair> all = best;
    std::erase_if(best, [&](const Pair& outer) {
      return std::ranges::any_of(all, [&](const Pair& inner) {
        if (inner.end == outer.end && inner.start != outer.start)
          return upstream(inner.start).contains(outer.start);
        return inner.start == outer.start && inner.end != outer.end &&
               upstream(outer.end).contains(inner.end);
      });
    });
  }

  // The closest pair of all first, so that inner ones find each other before outer ones do.
  void pair() {
    std::map<NodeIndex, std::map<NodeIndex, std::size_t>> above;
    for (const NodeIndex end : ends_) above.emplace(end, upstream(end));
    std::vector<NodeIndex> starts = starts_, ends = ends_;
    for (;;) {
      std::vector<Pair> best;
      for (const NodeIndex end : ends)
        for (const NodeIndex start : starts) {
          const auto at = above[end].find(start);
          if (at == above[end].end()) continue;
          if (!best.empty() && at->second > best.front().distance) continue;
          if (!best.empty() && at->second < best.front().distance) best.clear();
          best.push_back({start, end, at->second});
        }
      if (best.empty()) break;
      drop_outer(best);
      for (const Pair& one : best)
        for (const Pair& other : best)
          if (&one != &other && (one.start == other.start || one.end == other.end))
            return fault("ambiguous_loop_nesting",
                         cat(shown(one.end), " and ", shown(one.start),
                             " may belong together, but another is as close. Link the outer "
                             "loop's iteration_index to parent_iteration of the inner one."),
                         {one.start, other.start}, {one.end, other.end});
      for (const Pair& one : best) {
        pairs_.push_back(one);
        std::erase(starts, one.start);
        std::erase(ends, one.end);
      }
    }
    for (const NodeIndex end : ends)
      fault("loop_end_without_start", cat(shown(end), " ends a loop that no StartLoop begins"),
            {end}, {end});
    for (const NodeIndex start : starts)
      fault("loop_start_without_end", cat(shown(start), " begins a loop that no EndLoop ends"),
            {start}, {});
  }

  std::vector<bool> reached_from(NodeIndex start) const {
    std::vector<std::vector<NodeIndex>> readers(graph_.nodes.size());
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n)
      if (!is_body_[n])
        for_each_binding(graph_.nodes[n], [&](const Binding& binding) {
          if (const auto* link = std::get_if<Source>(&binding)) readers[link->node].push_back(n);
        });
    std::vector<bool> found(graph_.nodes.size(), false);
    std::vector<NodeIndex> open{start};
    found[start] = true;
    while (!open.empty()) {
      const NodeIndex n = open.back();
      open.pop_back();
      for (const NodeIndex reader : readers[n])
        if (!found[reader]) {
          found[reader] = true;
          open.push_back(reader);
        }
    }
    return found;
  }

  static Record inputs_of(const Graph& graph, const Node& node) {
    Record values, links;
    const auto add = [&](std::string_view name, const Binding& binding) {
      if (const auto* value = std::get_if<Value>(&binding))
        values.fields.emplace_back(name, *value);
      else if (const auto* link = std::get_if<Source>(&binding))
        links.fields.emplace_back(name, make_value(List{{make_value(graph.nodes[link->node].id),
                                                         make_value(std::int64_t{link->port})}}));
    };
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
      add(node.type->input(i).name, node.inputs[i]);
    for (const auto& [name, binding] : node.extra) add(name, binding);
    return {{{"class_type", make_value(std::string(node.type->name()))},
             {"values", make_value(std::move(values))},
             {"links", make_value(std::move(links))}}};
  }

  void bind(const Pair& pair) {
    const std::vector<bool> below = reached_from(pair.start);
    const std::map<NodeIndex, std::size_t> above = upstream(pair.end);
    std::vector<NodeIndex> body;
    std::vector<bool> is_inside(graph_.nodes.size(), false);
    for (const auto& [n, distance] : above)
      if (below[n] && n != pair.start && n != pair.end) {
        body.push_back(n);
        is_inside[n] = true;
      }
    if (below[pair.start] && upstream(pair.start).contains(pair.end))
      return fault("loop_end_cycle", cat(shown(pair.end), " feeds the start of its own loop"),
                   {pair.start, pair.end}, {pair.end});
    check_escape(pair, is_inside);
    check_accumulate(pair, is_inside);
    if (!faults_.empty()) return;
    rewire(pair, body, is_inside);
  }

  void check_escape(const Pair& pair, const std::vector<bool>& is_inside) {
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
      if (is_inside[n] || is_body_[n] || n == pair.end || n == pair.start) continue;
      for_each_binding(graph_.nodes[n], [&](const Binding& binding) {
        const auto* link = std::get_if<Source>(&binding);
        if (link != nullptr && (is_inside[link->node] || link->node == pair.start))
          fault("loop_escape",
                cat(shown(n), " reads ", shown(link->node),
                    " of a loop that it does not belong to. Give it the outputs of ",
                    shown(pair.end), ", or link it to one of its terminations."),
                {n, link->node}, {pair.end});
      });
    }
  }

  void check_accumulate(const Pair& pair, const std::vector<bool>& is_inside) {
    const Node& end = graph_.nodes[pair.end];
    const auto port = end.type->find_input("accumulate");
    const auto* link = port ? std::get_if<Source>(&end.inputs[*port]) : nullptr;
    if (link != nullptr && (is_inside[link->node] || link->node == pair.start))
      fault("loop_accumulate_from_body",
            cat(shown(pair.end), ", input 'accumulate': it depends on the loop itself"),
            {link->node}, {pair.end});
  }

  void rewire(const Pair& pair, const std::vector<NodeIndex>& body,
              const std::vector<bool>& is_inside) {
    Record nodes;
    std::vector<Source> outside;
    const auto note = [&](const Node& node) {
      for_each_binding(node, [&](const Binding& binding) {
        const auto* link = std::get_if<Source>(&binding);
        if (link == nullptr || is_inside[link->node] || link->node == pair.start) return;
        if (std::ranges::find(outside, *link) == outside.end()) outside.push_back(*link);
      });
    };
    for (const NodeIndex n : body) {
      nodes.fields.emplace_back(graph_.nodes[n].id, make_value(inputs_of(graph_, graph_.nodes[n])));
      note(graph_.nodes[n]);
      is_body_[n] = true;
    }
    Node& end = graph_.nodes[pair.end];
    Record ending = inputs_of(graph_, end);
    ending.fields.emplace_back("id", make_value(end.id));
    note(end);
    Node& start = graph_.nodes[pair.start];
    start.extra.emplace_back(kLoopBody, make_record({{"nodes", make_value(std::move(nodes))},
                                                     {"end", make_value(std::move(ending))}}));
    for (std::size_t i = 0; i < outside.size(); ++i)
      start.extra.emplace_back(cat(kLoopOutside, i), outside[i]);
    for (std::uint32_t i = 0; i < end.inputs.size(); ++i)
      if (std::holds_alternative<Source>(end.inputs[i])) end.inputs[i] = {};
    std::erase_if(end.extra,
                  [](const auto& extra) { return std::holds_alternative<Source>(extra.second); });
    end.inputs[*end.type->find_input("output_value")] =
        Source{pair.start, *start.type->find_output("current_iteration_value")};
  }

  Graph& graph_;
  std::vector<bool>& is_body_;
  std::vector<NodeIndex> starts_, ends_;
  std::vector<Pair> pairs_;
  std::vector<LoopFault> faults_;
};

}  // namespace

std::vector<LoopFault> bind_loops(Graph& graph, std::vector<bool>& is_body) {
  is_body.assign(graph.nodes.size(), false);
  LoopBinder binder(graph, is_body);
  return binder.has_any() ? binder.run() : std::vector<LoopFault>();
}

}  // namespace heddle::engine
