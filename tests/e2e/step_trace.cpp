#include "tests/e2e/step_trace.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/tensor/shape.h"
#include "engine/tensor/value.h"

namespace heddle::test {

namespace {

using engine::cat;
using engine::Json;
using engine::NodeIndex;
using engine::Source;
using engine::Value;

std::string printed_name(const Json& step) {
  const auto text = [&](const char* key) { return step.at(key).as_string(); };
  const std::string kind = text("kind");
  if (kind == "run") return cat("run ", text("node"), " on ", text("device"));
  const std::string value = cat(kind, " ", text("node"), ".", text("output"));
  return kind == "transfer" ? cat(value, " ", text("from"), " -> ", text("to"))
                            : cat(value, " on ", text("device"));
}

}  // namespace

std::string StepTrace::device_name(std::uint32_t device) const {
  return engine::device_name(device, topology_);
}
std::string StepTrace::name(const Source& source) const {
  const engine::Node& node = graph_.nodes[source.node];
  return cat(node.id, ".", node.type->output(source.port).name);
}
std::string StepTrace::release_name(const Key& key) const {
  return cat("release ", name(key.source), " on ", held_.at(key).where);
}

// A copy of no bytes is the value itself.
StepTrace::Key StepTrace::memory_of(const Source& source, std::uint32_t at) const {
  const auto copy = held_.find({source, at});
  return copy != held_.end() ? copy->first : Key{source, kWhereMade};
}

void StepTrace::end(const std::string& step) {
  TakenStep& taken = steps_[step];
  taken.ended = ++now_;
  if (taken.begun == 0) taken.begun = now_;
  taken.thread = std::this_thread::get_id();
  taken.thread_began = last_began_[taken.thread];
}

void StepTrace::began(NodeIndex node, std::string_view device) {
  const std::lock_guard lock(mutex_);
  const auto known = names_.find(std::string(device));
  const std::string& run = runs_[node] =
      cat("run ", graph_.nodes[node].id, " on ",
          known == names_.end() ? std::string(device) : known->second);
  TakenStep& taken = steps_[run];
  taken.begun = last_began_[std::this_thread::get_id()] = ++now_;
  for (const Key& read : reads_[node]) {
    held_.at(read).used_by.insert(run);
    taken.after.insert(read.at == kWhereMade ? runs_.at(read.source.node)
                                             : cat("transfer ", name(read.source), " ",
                                                   held_.at({read.source, kWhereMade}).where,
                                                   " -> ", device_name(read.at)));
  }
}

void StepTrace::read(NodeIndex reader, const Source& source, std::uint32_t at) {
  const std::lock_guard lock(mutex_);
  reads_[reader].insert(memory_of(source, at));
}

void StepTrace::done(NodeIndex node, std::span<const Value> outputs) {
  const std::lock_guard lock(mutex_);
  const std::string& run = runs_.at(node);
  end(run);
  for (std::uint32_t o = 0; o < outputs.size(); ++o) {
    const Key key{{node, o}, kWhereMade};
    Held& made = held_[key];
    made.used_by.insert(run);
    engine::for_each_tensor(*outputs[o], [&](const engine::Tensor& tensor) {
      const std::string place = tensor->storage->place();
      const auto known = names_.find(place);
      made.where = known == names_.end() ? place : known->second;
      made.bytes += engine::dense_bytes(tensor->info);
      made.storages.insert(tensor->storage.get());
    });
    for (const Key& read : reads_[node])
      if (std::ranges::any_of(held_.at(read).storages,
                              [&](const void* s) { return made.storages.contains(s); })) {
        held_.at(read).holders.push_back(key);
        made.holds.push_back(read);
      }
  }
}

void StepTrace::sent(const Source& source, std::uint32_t from, std::uint32_t to,
                     std::uint64_t bytes, const Value& copy) {
  const std::lock_guard lock(mutex_);
  Held& made = held_.at({source, kWhereMade});
  if (bytes == 0) {
    made.aliases.insert(to);
    return;
  }
  const std::string transfer =
      cat("transfer ", name(source), " ", device_name(from), " -> ", device_name(to));
  end(transfer);
  steps_[transfer].bytes = bytes;
  steps_[transfer].after.insert(runs_.at(source.node));
  made.used_by.insert(transfer);
  Held& there = held_[{source, to}];
  there.where = device_name(to);
  there.bytes = bytes;
  engine::for_each_tensor(
      *copy, [&](const engine::Tensor& tensor) { there.storages.insert(tensor->storage.get()); });
}

void StepTrace::release(const Source& source, const Value&) {
  const std::lock_guard lock(mutex_);
  const Key key{source, kWhereMade};
  held_.at(key).dropped = true;
  release_unheld(key);
}

void StepTrace::release_copy(const Source& source, std::uint32_t at, const Value&) {
  const std::lock_guard lock(mutex_);
  const Key key = memory_of(source, at);
  if (key.at == kWhereMade)
    held_.at(key).aliases.erase(at);
  else
    held_.at(key).dropped = true;
  release_unheld(key);
}

void StepTrace::release_unheld(const Key& key) {
  Held& held = held_.at(key);
  if (!held.dropped || held.released || !held.aliases.empty() || held.storages.empty()) return;
  std::set<std::string> after = held.used_by;
  for (const Key& holder : held.holders) {
    if (!held_.at(holder).released) return;
    after.insert(release_name(holder));
  }
  held.released = true;
  const std::string step = release_name(key);
  end(step);
  steps_[step].bytes = held.bytes;
  steps_[step].after = std::move(after);
  for (const Key& under : held.holds) release_unheld(under);
}

std::vector<std::string> trace_faults(const std::vector<Json>& printed, const TakenSteps& taken) {
  std::vector<std::string> faults, names;
  for (const Json& step : printed) names.push_back(printed_name(step));
  std::set<std::string> all;
  for (const std::string& name : names)
    if (!all.insert(name).second) faults.push_back(cat(name, " is printed twice"));
  for (const auto& [name, step] : taken)
    if (!all.contains(name)) faults.push_back(cat(name, " was taken and is not printed"));
  for (std::size_t i = 0; i < printed.size(); ++i) {
    const auto found = taken.find(names[i]);
    if (found == taken.end()) {
      faults.push_back(cat(names[i], " is printed and was not taken"));
      continue;
    }
    const TakenStep& step = found->second;
    if (step.ended == 0) faults.push_back(cat(names[i], " was not done"));
    const Json* const bytes = printed[i].find("bytes");
    if (bytes != nullptr && step.bytes && bytes->as_uint64() != *step.bytes)
      faults.push_back(cat(names[i], " was of ", *step.bytes, " bytes, not of ", bytes->as_uint64(),
                           " as printed"));
    std::set<std::string> after;
    for (const Json& a : printed[i].at("after").as_array())
      after.insert(names.at(std::size_t(a.as_uint64())));
    for (const std::string& a : after)
      if (!step.after.contains(a)) faults.push_back(cat(names[i], " did not wait for ", a));
    for (const std::string& a : step.after)
      if (!after.contains(a)) faults.push_back(cat(names[i], " is not printed behind ", a));
    bool at_once = false;
    for (const std::string& a : after) {
      const auto before = taken.find(a);
      if (before == taken.end()) continue;
      if (before->second.ended == 0 || before->second.ended >= step.begun)
        faults.push_back(cat(names[i], " began before ", a, " was done"));
      at_once |= before->second.thread == step.thread && before->second.ended > step.thread_began;
    }
    if (names[i].starts_with("release") && !at_once)
      faults.push_back(cat(names[i], " came later than with what it waited for"));
  }
  return faults;
}

}  // namespace heddle::test
