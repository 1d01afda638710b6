#include "engine/serve/router.h"

#include <algorithm>
#include <optional>

#include "engine/base/text.h"

namespace heddle::engine {
namespace {

bool is_part(std::string_view segment) { return segment.starts_with('{'); }
bool is_rest(std::string_view segment) { return segment.ends_with("...}"); }
std::string_view name_of_part(std::string_view segment) {
  segment.remove_prefix(1);
  segment.remove_suffix(is_rest(segment) ? 4 : 1);
  return segment;
}

// All of the path from a segment on.
std::string_view from(std::string_view path, std::string_view segment) {
  return path.substr(std::size_t(segment.data() - path.data()));
}

using Parts = std::map<std::string, std::string, std::less<>>;

std::optional<Parts> match(const std::vector<std::string>& pattern, std::string_view path) {
  const std::vector<std::string_view> segments = path_segments(path);
  Parts parts;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (i >= segments.size()) return {};
    if (!is_part(pattern[i])) {
      if (percent_decoded(segments[i]) != pattern[i]) return {};
      continue;
    }
    const bool is_last = is_rest(pattern[i]);
    const auto value = percent_decoded(is_last ? from(path, segments[i]) : segments[i]);
    if (!value || value->empty()) return {};
    parts.emplace(name_of_part(pattern[i]), *value);
    if (is_last) return parts;
  }
  return segments.size() == pattern.size() ? std::optional(parts) : std::nullopt;
}

}  // namespace

void Router::add(std::string_view method, std::string_view pattern, Route route) {
  Entry entry{std::string(method), {}, std::move(route)};
  for (const std::string_view segment : path_segments(pattern))
    entry.segments.emplace_back(segment);
  entries_.push_back(std::move(entry));
}

void Router::add_twice(std::string_view method, std::string_view pattern, const Route& route) {
  add(method, pattern, route);
  add(method, cat("/api", pattern), route);
}

HttpResponse Router::answer(const HttpRequest& request) const {
  std::vector<std::string> others;
  for (const Entry& entry : entries_) {
    std::optional<Parts> parts = match(entry.segments, request.path);
    if (!parts) continue;
    const bool is_meant =
        entry.method == request.method || (entry.method == "GET" && request.method == "HEAD");
    if (!is_meant) {
      others.push_back(entry.method);
      continue;
    }
    try {
      const Call call{request, Query(request.query), *std::move(parts)};
      if (guard_) guard_(call, entry.pattern());
      return entry.route(call);
    } catch (Refused& refused) {
      return std::move(refused.response);
    }
  }
  if (others.empty()) return text_response("404: Not Found", 404);
  std::ranges::sort(others);
  others.erase(std::unique(others.begin(), others.end()), others.end());
  return text_response("405: Method Not Allowed", 405).set("Allow", join(others, ","));
}

std::string Router::Entry::pattern() const { return cat(method, " /", join(segments, "/")); }

std::vector<std::string> Router::patterns() const {
  std::vector<std::string> all;
  for (const Entry& entry : entries_) all.push_back(entry.pattern());
  return all;
}

}  // namespace heddle::engine
