#include "engine/serve/run_messages.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/text.h"
#include "engine/serve/preview_image.h"

namespace heddle::engine {
namespace {

constexpr std::int64_t kMostSteps = 50'000;
constexpr double kPrecision = 1e-11;  // of a share

// Of the fraction that a share is, of those with so small a denominator; 0: of none. By continued
// fractions: what is that near to a number is among its convergents.
std::int64_t denominator_of(double share) {
  std::int64_t before = 0, denominator = 1;
  for (double rest = share; denominator <= kMostSteps;) {
    const double numerator = std::round(share * double(denominator));
    if (numerator >= 1 && std::abs(share - numerator / double(denominator)) < kPrecision)
      return denominator;
    rest -= std::floor(rest);
    if (rest < kPrecision) return 0;
    rest = 1 / rest;
    const auto next = std::int64_t(rest) * denominator + before;
    before = std::exchange(denominator, next);
  }
  return 0;
}

// Python's names of what went wrong: clients go by some of them.
std::string_view exception_type(int code) {
  switch (static_cast<Code>(code)) {
    case Code::invalid_argument:
      return "ValueError";
    case Code::not_found:
      return "FileNotFoundError";
    case Code::unsupported:
      return "NotImplementedError";
    case Code::out_of_memory:
      return "torch.OutOfMemoryError";
    case Code::io:
      return "OSError";
    default:
      return "RuntimeError";
  }
}

bool is_link(const Json& value) {
  return value.is_array() && value.size() == 2 && value.at(std::size_t{0}).is_string();
}

// Each as the list that a node gets. What came over a link is not known here.
Json current_inputs(const Json* node) {
  Json all = Json::object();
  const Json* inputs = node == nullptr ? nullptr : node->find("inputs");
  if (inputs == nullptr || !inputs->is_object()) return all;
  for (const Json::Member& input : inputs->members())
    if (!is_link(input.value)) {
      Json list = Json::array();
      all.set(input.key, std::move(list.push(input.value)));
    }
  return all;
}

std::string class_of(const Json* node) {
  const Json* type = node == nullptr ? nullptr : node->find("class_type");
  return type != nullptr && type->is_string() ? type->as_string() : "";
}

}  // namespace

StepCounter::Step StepCounter::step_of(double share) {
  share = std::clamp(share, 0.0, 1.0);
  const auto fits = [&](std::int64_t most) {
    const double steps = share * double(most);
    return std::abs(steps - std::round(steps)) < kPrecision * double(most);
  };
  if (share == 0) return {0, std::max<std::int64_t>(1, most_)};
  if (most_ == 0 || !fits(most_)) {
    const std::int64_t most = denominator_of(share);
    most_ = most > 0 ? most : 100;
  }
  return {std::int64_t(std::lround(share * double(most_))), most_};
}

RunMessages::RunMessages(const Job& job, const Json& prompt, Clients& clients,
                         std::function<std::int64_t()> now)
    : job_(job), prompt_(prompt), clients_(clients), now_(std::move(now)) {
  const Json targets = parse_json(job.targets.empty() ? "[]" : job.targets, "targets");
  for (const Json& target : targets.as_array()) targets_.insert(target.as_string());
}

Json RunMessages::of_this() const {
  Json data = Json::object();
  return std::move(data.set("prompt_id", job_.id));
}

Json RunMessages::message(std::string_view type, Json data) const {
  Json whole = Json::object();
  return std::move(whole.set("type", type).set("data", std::move(data)));
}

void RunMessages::send(std::string_view type, Json data, bool to_all_else) const {
  if (!job_.client.empty() || to_all_else)
    clients_.send(audience(), message(type, std::move(data)));
}

void RunMessages::record(std::string_view type, Json data, bool to_all_else) {
  data.set("timestamp", now_());
  Json pair = Json::array();
  messages_.push(std::move(pair.push(type).push(data)));
  send(type, std::move(data), to_all_else);
}

RunMessages::Node RunMessages::node_of(const heddle::Event& event) {
  return {std::string(event.node), std::string(event.display_node), std::string(event.parent_node),
          std::string(event.real_node), std::string(event.class_type)};
}

void RunMessages::begin() { record("execution_start", of_this()); }

// What is cached is told first of all, together.
void RunMessages::flush_cached() {
  const bool is_first = messages_.size() < 2;
  if (cached_.empty() && !is_first) return;
  const std::vector<Node> nodes = std::exchange(cached_, {});
  Json ids = Json::array();
  for (const Node& node : nodes) ids.push(node.id);
  record("execution_cached", of_this().set("nodes", std::move(ids)));
  for (const Node& node : nodes) {
    if (!targets_.contains(node.id)) continue;
    send_executed(node);
    state_of(node).name = "finished";
    states_.at(node.id).step = {1, 1};
    send_states();
  }
}

void RunMessages::take(const heddle::Event& event) {
  const Node node = node_of(event);
  switch (event.kind) {
    case heddle::Event::Kind::node_cached:
      cached_.push_back(node);
      return;
    case heddle::Event::Kind::node_shows:
      return showed(node, event.text);
    case heddle::Event::Kind::node_started:
      flush_cached();
      return started(node);
    case heddle::Event::Kind::node_progress:
      flush_cached();
      return progressed(node, event.fraction, event.text);
    case heddle::Event::Kind::node_done:
      flush_cached();
      return done(node);
    case heddle::Event::Kind::node_blocked:
      flush_cached();
      return blocked(node, event.text);
    case heddle::Event::Kind::preview:
      flush_cached();
      return preview(node, *event.preview);
    case heddle::Event::Kind::picture_sent:  // a result: it is not scaled, and never left out
      flush_cached();
      return send_picture(node, {event.text, false, false});
    default:
      return;  // ComfyUI has no words for these
  }
}

RunMessages::State& RunMessages::state_of(const Node& node) {
  const auto [at, is_new] = states_.try_emplace(node.id);
  if (is_new) {
    at->second.node = node;
    order_.push_back(node.id);
  }
  return at->second;
}

void RunMessages::send_states() const {
  Json nodes = Json::object();
  for (const std::string& id : order_) {
    const State& state = states_.at(id);
    Json told = Json::object();
    told.set("value", state.step.value).set("max", state.step.most).set("state", state.name);
    told.set("node_id", id).set("prompt_id", job_.id);
    told.set("display_node_id", state.node.display);
    told.set("parent_node_id", state.node.parent.empty() ? Json() : Json(state.node.parent));
    told.set("real_node_id", state.node.real);
    nodes.set(id, std::move(told));
  }
  send("progress_state", of_this().set("nodes", std::move(nodes)), true);
}

void RunMessages::started(const Node& node) {
  State& state = state_of(node);
  state.name = "running";
  state.step = {0, 1};
  state.counter = {};
  state.text.clear();
  {
    const std::lock_guard lock(mutex_);
    running_ = node.display;
  }
  send_states();
  send("executing", of_this().set("node", node.id).set("display_node", node.display));
}

void RunMessages::progressed(const Node& node, double share, std::string_view text) {
  State& state = state_of(node);
  if (std::string_view(state.name) != "running") return;  // late: its bar is not to move again
  if (!text.empty() && text != state.text) {
    state.text = text;
    clients_.send_text_of(audience(), node.id, text);
  }
  state.step = state.counter.step_of(share);
  send_states();
  send("progress",
       of_this().set("value", state.step.value).set("max", state.step.most).set("node", node.id),
       true);
}

void RunMessages::showed(const Node& node, std::string_view ui) {
  Json shown;
  try {
    shown = parse_json(ui, "ui");
  } catch (const Error&) {
    return;  // of a plugin that writes no JSON
  }
  outputs_.set(node.id, std::move(shown));
  Json meta = Json::object();
  meta.set("node_id", node.id).set("display_node", node.display);
  meta.set("parent_node", node.parent.empty() ? Json() : Json(node.parent));
  meta_.set(node.id, std::move(meta.set("real_node_id", node.real)));
}

void RunMessages::add_shown(std::string_view ui) {
  const Json all = parse_json(ui, "ui");
  for (const Json::Member& node : all.members())
    if (outputs_.find(node.key) == nullptr)
      showed({node.key, node.key, "", node.key, ""}, write_json(node.value));
}

void RunMessages::send_executed(const Node& node) {
  const Json* shown = outputs_.find(node.id);
  Json data = of_this();
  data.set("node", node.id).set("display_node", node.display);
  send("executed", std::move(data.set("output", shown == nullptr ? Json() : *shown)));
}

void RunMessages::done(const Node& node) {
  executed_.push_back(node.id);
  if (outputs_.find(node.id) != nullptr) send_executed(node);
  State& state = state_of(node);
  state.name = "finished";
  state.step.value = state.step.most;
  send_states();
}

void RunMessages::blocked(const Node& node, std::string_view text) {
  Json data = of_this();
  data.set("node_id", node.id).set("node_type", node.class_type).set("executed", executed());
  data.set("exception_message", cat("Execution Blocked: ", text));
  data.set("exception_type", "ExecutionBlocked").set("traceback", Json::array());
  data.set("current_inputs", Json::array()).set("current_outputs", Json::array());
  send("execution_error", std::move(data), true);
}

void RunMessages::preview(const Node& node, const heddle::Preview& picture) {
  const std::string jpeg =
      preview_jpeg(picture.pixels, picture.width, picture.height, kPreviewSide);
  if (!jpeg.empty()) send_picture(node, {jpeg, true, true});
}

void RunMessages::send_picture(const Node& node, const SentPicture& picture) const {
  Json about = of_this();
  about.set("node_id", node.id).set("display_node_id", node.display);
  about.set("parent_node_id", node.parent.empty() ? Json() : Json(node.parent));
  about.set("real_node_id", node.real);
  clients_.send_picture(audience(), about, picture);
}

Json RunMessages::executed() const {
  Json ids = Json::array();
  for (const std::string& id : executed_) ids.push(id);
  return ids;
}

JobOutcome RunMessages::outcome(JobState state, std::string_view status, bool completed,
                                Json error) {
  Json told = Json::object(), whole = Json::object();
  told.set("status_str", status).set("completed", completed).set("messages", messages_);
  whole.set("status", std::move(told)).set("meta", meta_);
  if (!error.is_null()) whole.set("error", std::move(error));
  const std::lock_guard lock(mutex_);
  running_.clear();
  return {state, write_json(outputs_), write_json(whole)};
}

JobOutcome RunMessages::succeed() {
  flush_cached();
  record("execution_success", of_this());
  return outcome(JobState::done, "success", true);
}

// By the trail, which names the node as people know it: of one that came while the run was under
// way, the one that stands for it.
std::string RunMessages::node_of_error(const heddle::EngineError& error) const {
  for (const std::string& frame : error.trail())
    for (const Json::Member& node : prompt_.members()) {
      const std::string name = cat("node ", quote(node.key));
      if (frame == cat(name, " (", class_of(&node.value), ")") ||
          frame.starts_with(cat(name, ", expanded into ")))
        return node.key;
    }
  return targets_.empty() ? "" : *targets_.begin();
}

JobOutcome RunMessages::fail(const heddle::EngineError& error) {
  flush_cached();
  const std::string id = node_of_error(error);
  const Json* node = prompt_.find(id);
  if (const auto state = states_.find(id); state != states_.end()) {
    state->second.name = "error";
    send_states();
  }
  Json traceback = Json::array(), ids = Json::array(), data = of_this(), typed = Json::object();
  for (const std::string& frame : error.trail()) traceback.push(frame);
  for (const Json::Member& member : prompt_.members()) ids.push(member.key);
  data.set("node_id", id).set("node_type", class_of(node)).set("executed", executed());
  data.set("exception_message", cat(error.what(), "\n"));
  typed.set("code", error.code()).set("message", error.what()).set("node", id);
  typed.set("class_type", class_of(node)).set("trail", traceback);
  data.set("exception_type", exception_type(error.code())).set("traceback", std::move(traceback));
  data.set("current_inputs", current_inputs(node)).set("current_outputs", std::move(ids));
  record("execution_error", std::move(data));
  return outcome(JobState::failed, "error", false, std::move(typed));
}

JobOutcome RunMessages::interrupt() {
  flush_cached();
  std::string id;
  for (const std::string& one : order_)
    if (std::string_view(states_.at(one).name) == "running") id = states_.at(one).node.real;
  if (id.empty() && !targets_.empty()) id = *targets_.begin();
  Json data = of_this();
  data.set("node_id", id).set("node_type", class_of(prompt_.find(id))).set("executed", executed());
  record("execution_interrupted", std::move(data), true);
  return outcome(JobState::cancelled, "error", false);
}

void RunMessages::end() { send("executing", of_this().set("node", Json())); }

std::string RunMessages::running_node() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

}  // namespace heddle::engine
