#include "engine/serve/metrics.h"

#include <algorithm>

#include "engine/base/text.h"

namespace heddle::engine {
namespace {

std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : to_valid_utf8(value))
    if (c == '\n')
      text += "\\n";
    else if (c == '"' || c == '\\')
      text += {'\\', c};
    else
      text += c;
  return text;
}

}  // namespace

void Exposition::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

void Exposition::sample(const Labels& labels, double value, std::string_view suffix) {
  std::vector<std::string> parts;
  for (const auto& [label, text] : labels) parts.push_back(cat(label, "=\"", escaped(text), "\""));
  text_ +=
      cat(name_, suffix, parts.empty() ? "" : cat("{", join(parts, ","), "}"), " ", value, "\n");
}

void Histogram::add(double seconds) {
  const auto bound = std::ranges::lower_bound(kBounds, seconds);
  ++counts_[std::size_t(bound - kBounds.begin())];
  sum_ += seconds;
}

void Histogram::write(Exposition& to) const {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i];
    to.sample({{"le", i < kBounds.size() ? cat(kBounds[i]) : "+Inf"}}, double(below), "_bucket");
  }
  to.sample({}, sum_, "_sum");
  to.sample({}, double(below), "_count");
}

void Metrics::job_began(double waited_seconds) {
  const std::lock_guard lock(mutex_);
  waits_.add(std::max(0.0, waited_seconds));
}

void Metrics::job_ended(JobState state, double run_seconds, const std::string& error) {
  const std::lock_guard lock(mutex_);
  runs_.add(std::max(0.0, run_seconds));
  ++ended_[state];
  if (!error.empty()) ++errors_[error];
}

void Metrics::take(const heddle::Event& event) {
  using Kind = heddle::Event::Kind;
  const bool is_step = event.kind == Kind::node_progress && event.fraction > 0;
  if (!is_step && event.kind != Kind::node_done && event.kind != Kind::node_cached) return;
  const std::lock_guard lock(mutex_);
  NodeClass& node = nodes_[std::string(event.class_type)];
  if (is_step) {
    ++node.steps;
    return;
  }
  if (event.kind == Kind::node_cached) {
    ++node.cached;
    return;
  }
  ++node.runs;
  node.seconds += event.seconds;
}

void Metrics::answered(unsigned status) {
  const std::lock_guard lock(mutex_);
  ++answers_[status];
}

void Metrics::write(Exposition& to) const {
  const std::lock_guard lock(mutex_);
  to.family("heddle_jobs_ended_total", "counter", "Jobs that have run, by how they ended.");
  for (const JobState state : {JobState::done, JobState::failed, JobState::cancelled}) {
    const auto found = ended_.find(state);
    to.sample({{"state", std::string(job_state_name(state))}},
              found == ended_.end() ? 0 : double(found->second));
  }
  to.family("heddle_job_errors_total", "counter", "Jobs that have failed, by the error's code.");
  for (const auto& [code, count] : errors_) to.sample({{"code", code}}, double(count));
  to.family("heddle_job_wait_seconds", "histogram", "From a job's submission to its beginning.");
  waits_.write(to);
  to.family("heddle_job_run_seconds", "histogram", "From a job's beginning to its end.");
  runs_.write(to);
  to.family("heddle_node_seconds_total", "counter", "Time in nodes, by their class.");
  for (const auto& [name, node] : nodes_) to.sample({{"class_type", name}}, node.seconds);
  to.family("heddle_node_runs_total", "counter", "Nodes that ran, by their class.");
  for (const auto& [name, node] : nodes_) to.sample({{"class_type", name}}, double(node.runs));
  to.family("heddle_node_steps_total", "counter",
            "Steps of nodes that work in steps, by their class.");
  for (const auto& [name, node] : nodes_) to.sample({{"class_type", name}}, double(node.steps));
  to.family("heddle_node_cache_hits_total", "counter",
            "Nodes that did not have to run, by their class.");
  for (const auto& [name, node] : nodes_) to.sample({{"class_type", name}}, double(node.cached));
  to.family("heddle_http_responses_total", "counter", "Answers, by their status.");
  for (const auto& [status, count] : answers_) to.sample({{"code", cat(status)}}, double(count));
}

}  // namespace heddle::engine
