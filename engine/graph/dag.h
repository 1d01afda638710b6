// Order and cycles of a graph of numbered nodes; the only door to Boost.Graph. Pure; any thread;
// linear (order: n log n).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace heddle::engine {

struct Dag {
  std::uint32_t node_count = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  // from, to; repeated ones are fine
};

// Topological order, smallest index first among the ready ones; shorter than node_count when there
// is a cycle.
std::vector<std::uint32_t> topological_order(const Dag& dag);

// One cycle of every strongly connected component that has any: the shortest through the
// component's smallest index, beginning there, in the order in which the edges run (the last node
// has an edge to the first). The components by their smallest index. Whoever breaks all of them and
// asks again comes to an end.
std::vector<std::vector<std::uint32_t>> cycles(const Dag& dag);

// Marks what can be reached backwards from `roots`, the roots included.
std::vector<bool> ancestors(const Dag& dag, const std::vector<std::uint32_t>& roots);

// What a graph looks like on paper. Texts as they are to be read; colours as Graphviz writes them,
// several with ':' between as stripes.
struct Drawing {
  struct Node {
    std::string label, colour;
  };
  struct Edge {
    std::uint32_t from = 0, to = 0;
    std::string label;
    bool dashed = false;
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<std::pair<std::string, std::string>> legend;  // what a colour means: text, colour
};

// The drawing in the language of Graphviz, for `dot`.
std::string write_dot(const Drawing& drawing);

}  // namespace heddle::engine
