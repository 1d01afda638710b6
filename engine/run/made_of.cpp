#include "engine/run/made_of.h"

#include "engine/resources/environment.h"
#include "engine/run/keys.h"
#include "engine/run/node_call.h"

namespace heddle::engine {

std::vector<Hash128> made_of(const Graph& graph, Environment& environment, FileHashes& hashes) {
  const std::vector<Assignment> on_host(graph.nodes.size(), {0, {0}, true, "", {}});
  NullObserver quiet;
  RunControl control;
  const NodeCall::Shared shared{environment, quiet, control, {}, nullptr, nullptr, &hashes};
  UsedFiles files;
  return output_keys(graph, on_host, {}, [&](NodeIndex n) {
    return fingerprint(shared, graph.nodes[n], environment.devices.front(), on_host[n], files);
  });
}

}  // namespace heddle::engine
