#include "engine/serve/event_log.h"

#include <algorithm>

#include "engine/base/text.h"

namespace heddle::engine {
namespace {

// JSON of one line has no line end that would end it early.
std::string event_text(std::string_view type, const Json& data) {
  return cat("event: ", type, "\ndata: ", write_json(data), "\n\n");
}

}  // namespace

bool EventLog::Reader::wants(const Subject& subject) const {
  if (!job.empty() && job != subject.job) return false;
  return subject.job.empty() || caller.may_see(subject.user);
}

void EventLog::publish(std::string_view type, const Subject& subject, const Json& data,
                       bool is_last) {
  const std::string text = event_text(type, data);
  const std::lock_guard lock(mutex_);
  kept_.push_back({next_, subject, cat("id: ", next_, "\n", text), is_last});
  ++next_;
  kept_bytes_ += kept_.back().text.size();
  std::erase_if(readers_, [&](const Reader& reader) {
    if (!reader.wants(subject)) return false;
    if (!reader.stream->send(kept_.back().text)) return true;
    const bool ends = is_last && !reader.job.empty();
    if (ends) reader.stream->close();
    return ends;
  });
  while (kept_.size() > 1 && (kept_.size() > most_events_ || kept_bytes_ > most_bytes_)) {
    kept_bytes_ -= kept_.front().text.size();
    kept_.pop_front();
  }
}

void EventLog::follow(const std::shared_ptr<HttpStream>& stream, std::optional<std::uint64_t> after,
                      const std::string& job, const Caller& caller) {
  const std::lock_guard lock(mutex_);
  std::erase_if(readers_, [](const Reader& reader) { return !reader.stream->is_read(); });
  readers_.push_back({stream, job, caller});
  const Reader reader = readers_.back();
  if (!after) return;
  const std::uint64_t oldest = next_ - kept_.size();
  const bool is_known = *after + 1 >= oldest && *after < next_;
  if (*after > 0 && !is_known) {
    Json lost = Json::object();
    stream->send(event_text("lost", lost.set("after", *after).set("next", oldest)));
  }
  for (const Kept& event : kept_)
    if ((!is_known || event.number > *after) && reader.wants(event.subject))
      stream->send(event.text);
}

// A job has ended before that is told: whoever comes in between would wait for nothing, or miss it.
void EventLog::close(const std::shared_ptr<HttpStream>& stream, const std::string& job,
                     const Json& state) {
  const std::lock_guard lock(mutex_);
  std::erase_if(readers_, [&](const Reader& reader) { return reader.stream == stream; });
  const auto is_end = [&](const Kept& event) { return event.is_last && event.subject.job == job; };
  // Its number is that of the last event before: whoever goes on from there misses nothing.
  if (std::ranges::none_of(kept_, is_end))
    stream->send(cat("id: ", next_ - 1, "\n", event_text("job", state)));
  stream->close();
}

void EventLog::close_all(const std::function<bool(const Caller&)>& is_gone) {
  std::vector<Reader> asked;
  {
    const std::lock_guard lock(mutex_);
    asked.assign(readers_.begin(), readers_.end());
  }
  std::erase_if(asked, [&](const Reader& reader) { return !is_gone(reader.caller); });
  if (asked.empty()) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(readers_, [&](const Reader& reader) {
    if (std::ranges::find(asked, reader.stream, &Reader::stream) == asked.end()) return false;
    reader.stream->close();
    return true;
  });
}

void EventLog::forget_all() {
  const std::lock_guard lock(mutex_);
  readers_.clear();
}

std::size_t EventLog::readers() const {
  const std::lock_guard lock(mutex_);
  return std::size_t(std::ranges::count_if(
      readers_, [](const Reader& reader) { return reader.stream->is_read(); }));
}

}  // namespace heddle::engine
