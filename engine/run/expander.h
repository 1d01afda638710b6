// From what a call of a node asks for (new_nodes.h) to nodes that can run: names become types,
// ports and links, and the new nodes are planned as the others were: inferred, placed, given keys.
// What of the workflow they read and nobody has planned, or what is gone already, is planned along
// with them. One thread at a time.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/literal.h"
#include "engine/resources/environment.h"
#include "engine/run/keys.h"
#include "engine/run/run_graph.h"
#include "engine/tensor/new_nodes.h"

namespace heddle::engine {

class Expander {
 public:
  // What becomes of a run's output that new nodes want to read: it is made, it will be, or it has
  // been made and is no longer there.
  enum class Standing { made, to_come, gone };
  using Stand = std::function<Standing(const Source&)>;

  // Nodes on their way into a run. A link among them has the position in `nodes`, one to a node of
  // the run kOuter and the position in `outer`.
  struct Batch {
    struct Pending {
      std::uint32_t node, input;
      bool is_extra;
      const NewLink* link;
    };
    std::vector<Node> nodes;
    std::vector<Pending> links;                // not yet resolved
    std::vector<NodeIndex> outer;              // nodes of the run
    std::vector<Source> made;                  // of these: outputs that are there
    std::vector<std::vector<Source>> results;  // by call, as NewNodes::outputs
    std::vector<AddedNode> planned;            // in a topological order, with links as in a run
    std::vector<NodeIndex> index;              // of `nodes`, in the run
  };
  static constexpr NodeIndex kOuter = NodeIndex{1} << 31;

  // All of it has to outlive this object. `fingerprint`: of a node that has any; asked once.
  struct Planning {
    std::span<const Hash128> device_classes;   // as in output_keys()
    std::function<Hash128(NodeIndex)> key_of;  // of a node of the run
    std::function<std::uint64_t(const Node&, const Assignment&)> fingerprint;
  };
  Expander(RunGraph& run, Environment& environment);

  // The nodes that the calls of `parent` ask for, without their links. `calls` outlive the batch.
  // Throws for classes that are not there, ids that there are already, values that inputs do not
  // take, and beyond the limits.
  Batch read(NodeIndex parent, std::span<const NewNodes* const> calls);
  // Finds what they are linked to, and adds what has to be made for that. With the run's lock.
  void resolve(Batch& batch, std::span<const NewNodes* const> calls, const Stand& stand);
  // Without the lock. From here on the batch is in a topological order.
  void plan(Batch& batch, const Planning& planning);
  // Adds them to the run, and gives their indices there. With the lock.
  void add(Batch& batch);
  // A result of the batch in the run.
  static Source in_run(const Batch& batch, const Source& source);

  // The node of the run with this id; kGraphInputs: there is none.
  NodeIndex find(std::string_view id);

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  using ById = boost::unordered_flat_map<std::string, NodeIndex, TextHash, std::equal_to<>>;

  void index_planned();
  void read_node(const NewNode& asked, Batch& batch);
  void set_literal(const NewNode& asked, const std::string& name, const Value& value, Node& node);
  std::shared_ptr<const NodeOrigin> origin_of(const NewNode& asked,
                                              const std::shared_ptr<const NodeOrigin>& usual);
  Source resolve_link(Batch& batch, Source source, const Stand& stand);
  NodeIndex bring(Batch& batch, NodeIndex outer);
  void order(Batch& batch) const;
  Graph graph_of(const Batch& batch) const;
  Placement place(const Graph& graph, const Inferred& inferred, std::size_t new_nodes) const;

  RunGraph& run_;
  Environment& environment_;
  LiteralReader literals_;  // defaults of inputs
  ById by_id_;              // made when first asked
  bool is_indexed_ = false;
  std::vector<bool> is_planned_;  // of the workflow's nodes
  // Of the batch at work: local positions by id, and by the node of the run that they stand for.
  ById here_;
  boost::unordered_flat_map<NodeIndex, NodeIndex> brought_;
  boost::unordered_flat_map<NodeIndex, std::uint32_t> outer_;  // positions in Batch::outer
};

}  // namespace heddle::engine
