// Kernels of the calls that a run will make, asked for before it comes to them. A library of a
// device may take its time to find out how it computes an op (plans of convolutions): that is done
// beside the work that comes first, by several threads at a time, and what is known then is known
// when the call's session is planned. Only calls whose shapes a plan knows can be asked about. What
// fails here is left to the session to report.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/place/plan.h"
#include "engine/program/infer.h"
#include "engine/resources/environment.h"

namespace heddle::engine {

// An op as a kernel is asked about it: shapes, no data.
struct OpToAsk {
  std::uint32_t device = 0;  // of the environment
  std::uint32_t op = 0;
  std::vector<heddle_view> views;  // inputs, then outputs
  std::vector<bool> is_given;      // by view
  std::size_t in_count = 0;
  std::vector<std::byte> attrs;
};

// The ops of all known calls, each once, in the order in which the run comes to them; those of
// devices that compute in host memory are left out, whose processors the run itself wants.
std::vector<OpToAsk> ops_ahead(const Graph& graph, const Plan& plan, const Inferred& inferred,
                               const Topology& topology, const Environment& environment);

// Asks from its making on; its end waits for what is being asked and asks for nothing more.
class KernelsAhead {
 public:
  // All of these outlive it.
  KernelsAhead(const Graph& graph, const Plan& plan, const Inferred& inferred,
               const Topology& topology, const Environment& environment);
  ~KernelsAhead();
  KernelsAhead(const KernelsAhead&) = delete;
  KernelsAhead& operator=(const KernelsAhead&) = delete;

  // Until all is asked.
  void wait();

 private:
  void ask_all();
  void open_devices() const;
  void ask_next();

  const Graph& graph_;
  const Plan& plan_;
  const Inferred& inferred_;
  const Topology& topology_;
  const Environment& environment_;
  std::vector<OpToAsk> ops_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

}  // namespace heddle::engine
