#include "engine/graph/dag.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/graphviz.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/range/iterator_range.hpp>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <sstream>

namespace heddle::engine {
namespace {

using Index = std::uint32_t;
using Adjacency =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                       boost::no_property, Index, std::size_t>;
constexpr Index kNone = std::numeric_limits<Index>::max();

enum class Direction { forward, backward };

// Edges to nodes that do not exist would be written past the rows: they are left out.
Adjacency adjacency(const Dag& dag, Direction direction) {
  std::vector<std::pair<Index, Index>> edges;
  edges.reserve(dag.edges.size());
  for (const auto& [from, to] : dag.edges) {
    if (from >= dag.node_count || to >= dag.node_count) continue;
    edges.emplace_back(direction == Direction::forward ? std::pair(from, to) : std::pair(to, from));
  }
  return Adjacency(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(),
                   dag.node_count);
}

auto successors(const Adjacency& graph, Index node) {
  const auto [begin, end] = boost::adjacent_vertices(node, graph);
  return boost::make_iterator_range(begin, end);
}

// The shortest way from `start` back to it inside of its component; empty when there is none.
// `parent` is scratch, all kNone before and after.
std::vector<Index> shortest_cycle(const Adjacency& graph, Index start,
                                  const std::vector<Index>& component, std::vector<Index>& parent) {
  std::vector<Index> seen{start};
  std::vector<Index> cycle;
  for (std::size_t at = 0; at < seen.size() && cycle.empty(); ++at) {
    for (const Index next : successors(graph, seen[at])) {
      if (component[next] != component[start]) continue;
      if (next == start) {
        for (Index back = seen[at]; back != start; back = parent[back]) cycle.push_back(back);
        cycle.push_back(start);
        break;
      }
      if (parent[next] != kNone) continue;
      parent[next] = seen[at];
      seen.push_back(next);
    }
  }
  for (const Index node : seen) parent[node] = kNone;
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

}  // namespace

// Boost's topological_sort() does not say which of several ready nodes comes first. People see this
// order, so it has to.
std::vector<std::uint32_t> topological_order(const Dag& dag) {
  std::vector<std::size_t> begin(dag.node_count + std::size_t{1}, 0), waiting(dag.node_count, 0);
  const auto is_inside = [&](const auto& edge) {
    return edge.first < dag.node_count && edge.second < dag.node_count;
  };
  for (const auto& edge : dag.edges) {
    if (!is_inside(edge)) continue;
    ++begin[edge.first + std::size_t{1}];
    ++waiting[edge.second];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<Index> successors(begin.back());
  std::vector<std::size_t> end(begin.begin(), begin.end() - 1);
  for (const auto& edge : dag.edges)
    if (is_inside(edge)) successors[end[edge.first]++] = edge.second;
  std::priority_queue<Index, std::vector<Index>, std::greater<>> ready;
  for (Index node = 0; node < dag.node_count; ++node)
    if (waiting[node] == 0) ready.push(node);
  std::vector<Index> order;
  order.reserve(dag.node_count);
  while (!ready.empty()) {
    const Index node = ready.top();
    ready.pop();
    order.push_back(node);
    for (std::size_t s = begin[node]; s < end[node]; ++s)
      if (--waiting[successors[s]] == 0) ready.push(successors[s]);
  }
  return order;
}

std::vector<std::vector<std::uint32_t>> cycles(const Dag& dag) {
  const Adjacency graph = adjacency(dag, Direction::forward);
  std::vector<Index> component(dag.node_count, 0);
  const auto indices = boost::get(boost::vertex_index, graph);
  const Index count = boost::strong_components(
      graph, boost::make_iterator_property_map(component.begin(), indices));
  std::vector<bool> done(count, false);
  std::vector<Index> parent(dag.node_count, kNone);
  std::vector<std::vector<Index>> found;
  for (Index node = 0; node < dag.node_count; ++node) {
    if (done[component[node]]) continue;
    done[component[node]] = true;
    std::vector<Index> cycle = shortest_cycle(graph, node, component, parent);
    if (!cycle.empty()) found.push_back(std::move(cycle));
  }
  return found;
}

std::vector<bool> ancestors(const Dag& dag, const std::vector<std::uint32_t>& roots) {
  const Adjacency graph = adjacency(dag, Direction::backward);
  std::vector<boost::default_color_type> colors(dag.node_count, boost::white_color);
  const auto color_map =
      boost::make_iterator_property_map(colors.begin(), boost::get(boost::vertex_index, graph));
  boost::queue<Index> queue;
  for (const Index root : roots) {
    if (root < dag.node_count && colors[root] == boost::white_color)
      boost::breadth_first_visit(graph, root, queue, boost::default_bfs_visitor(), color_map);
  }
  std::vector<bool> reached(dag.node_count);
  for (Index node = 0; node < dag.node_count; ++node)
    reached[node] = colors[node] != boost::white_color;
  return reached;
}

namespace {

// In a quoted text of Graphviz a backslash begins an escape of its own.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string escaped_html(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string legend_table(const Drawing& drawing) {
  std::string table = "<<table border=\"0\" cellspacing=\"4\"><tr>";
  for (const auto& [text, colour] : drawing.legend)
    table += "<td border=\"1\" bgcolor=\"" + colour + "\" width=\"24\"></td><td align=\"left\">" +
             escaped_html(text) + "</td>";
  return table + "</tr></table>>";
}

}  // namespace

std::string write_dot(const Drawing& drawing) {
  struct EdgeNumber {
    std::size_t number = 0;
  };
  // A list, unlike the rows above, keeps each edge's own number.
  using Picture = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS,
                                        boost::no_property, EdgeNumber>;
  Picture picture(drawing.nodes.size());
  for (std::size_t e = 0; e < drawing.edges.size(); ++e)
    boost::add_edge(drawing.edges[e].from, drawing.edges[e].to, EdgeNumber{e}, picture);
  std::ostringstream out;
  out.imbue(std::locale::classic());
  const auto node = [&](std::ostream& to, std::size_t n) {
    const Drawing::Node& it = drawing.nodes[n];
    const bool striped = it.colour.find(':') != std::string::npos;
    to << " [label=" << quoted(it.label) << ", style=\"" << (striped ? "striped" : "filled,rounded")
       << "\", fillcolor=" << quoted(it.colour) << "]";
  };
  const auto edge = [&](std::ostream& to, const auto& e) {
    const Drawing::Edge& it = drawing.edges[picture[e].number];
    to << " [label=" << quoted(it.label);
    if (it.dashed) to << ", style=dashed, penwidth=1.5";
    to << "]";
  };
  const auto whole = [&](std::ostream& to) {
    to << "graph [fontname=\"sans-serif\", fontsize=11, labelloc=b";
    if (!drawing.legend.empty()) to << ", label=" << legend_table(drawing);
    to << "];\nnode [shape=box, fontname=\"sans-serif\", fontsize=11];\nedge "
          "[fontname=\"sans-serif\", fontsize=9];\n";
  };
  boost::write_graphviz(out, picture, node, edge, whole);
  return out.str();
}

}  // namespace heddle::engine
