// What a run tells, in the messages of ComfyUI's server, to the client that asked for it; and what
// of it stands in the history. One run each; one thread at a time, but for running_node().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/queue/job.h"
#include "engine/serve/clients.h"
#include "heddle/engine.hpp"

namespace heddle::engine {

// Steps of so many, of which only the share is told: 0.05, 0.1, ... are 1, 2, ... of 20.
class StepCounter {
 public:
  struct Step {
    std::int64_t value = 0, most = 1;
  };
  Step step_of(double share);

 private:
  std::int64_t most_ = 0;  // 0: not known yet
};

class RunMessages {
 public:
  // `prompt`: the job's. `now`: ms of the clock.
  RunMessages(const Job& job, const Json& prompt, Clients& clients,
              std::function<std::int64_t()> now);

  void begin();
  void take(const heddle::Event& event);
  // How it has ended: one of them, the last call. Gives what the queue keeps.
  JobOutcome succeed();
  JobOutcome fail(const heddle::EngineError& error);
  JobOutcome interrupt();
  // Before succeed(), of a run that went on: what nodes have shown before. JSON, by id.
  void add_shown(std::string_view ui);
  // After that is written: clients wait for this.
  void end();

  const std::string& user() const { return job_.user; }  // whose job it is

  // That is shown as under way; empty: none. Any thread.
  std::string running_node() const;

 private:
  struct Node {
    std::string id, display, parent, real, class_type;
  };
  struct State {
    Node node;
    StepCounter counter;
    StepCounter::Step step;
    const char* name = "running";
    std::string text;  // that was told of it
  };

  static Node node_of(const heddle::Event& event);
  Json message(std::string_view type, Json data) const;
  Json of_this() const;  // {"prompt_id": ...}
  Audience audience() const { return {job_.client, job_.user}; }
  // To the client alone, where there is one. `to_all_else`: where there is none, to all who may see
  // the job.
  void send(std::string_view type, Json data, bool to_all_else = false) const;
  // The same, with the time, and kept for the history.
  void record(std::string_view type, Json data, bool to_all_else = false);
  void flush_cached();
  void started(const Node& node);
  void progressed(const Node& node, double share, std::string_view text);
  void showed(const Node& node, std::string_view ui);
  void done(const Node& node);
  void blocked(const Node& node, std::string_view text);
  void preview(const Node& node, const heddle::Preview& picture);
  void send_picture(const Node& node, const SentPicture& picture) const;
  void send_executed(const Node& node);
  void send_states() const;
  State& state_of(const Node& node);
  Json executed() const;
  // `error`: of a failure, for what is not ComfyUI's; else null.
  JobOutcome outcome(JobState state, std::string_view status, bool completed, Json error = {});
  std::string node_of_error(const heddle::EngineError& error) const;

  const Job job_;
  const Json& prompt_;
  Clients& clients_;
  const std::function<std::int64_t()> now_;
  std::set<std::string> targets_;
  std::vector<Node> cached_;  // not told yet
  std::map<std::string, State> states_;
  std::vector<std::string> order_;  // of states_, as they came
  std::vector<std::string> executed_;
  Json outputs_ = Json::object(), meta_ = Json::object(), messages_ = Json::array();
  mutable std::mutex mutex_;
  std::string running_;  // mutex_
};

}  // namespace heddle::engine
