#include "engine/serve/multipart.h"

#include <algorithm>
#include <cctype>

namespace heddle::engine {
namespace {

constexpr std::size_t kMostParts = 256;

bool begins_with(std::string_view text, std::string_view begin) {
  const auto low = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return text.size() >= begin.size() &&
         std::ranges::equal(text.substr(0, begin.size()), begin, {}, low, low);
}

// The value that begins at `at`, which comes behind it: in quotes, with the backslashes of browsers
// and of old clients, or without. Nothing where the quotes do not end.
std::optional<std::string> value_at(std::string_view header, std::size_t& at) {
  std::string value;
  if (header.substr(at, 1) != "\"") {
    const std::size_t end = std::min(header.find(';', at), header.size());
    value = header.substr(at, end - at);
    while (value.ends_with(' ')) value.pop_back();
    at = end;
    return value;
  }
  for (++at; at < header.size() && header[at] != '"'; ++at) {
    const bool is_escape = header[at] == '\\' && at + 1 < header.size() &&
                           (header[at + 1] == '"' || header[at + 1] == '\\');
    value += header[is_escape ? ++at : at];
  }
  if (at >= header.size()) return {};
  ++at;
  return value;
}

// NAME=VALUE of a header. What stands in the quotes of another value is none.
std::optional<std::string> parameter(std::string_view header, std::string_view name) {
  for (std::size_t at = header.find(';'); at < header.size(); at = header.find(';', at)) {
    ++at;
    while (at < header.size() && header[at] == ' ') ++at;
    const std::size_t end = std::min(header.find_first_of("=;", at), header.size());
    const std::string_view found = header.substr(at, end - at);
    at = end;
    if (header.substr(at, 1) != "=") continue;
    ++at;
    std::optional<std::string> value = value_at(header, at);
    if (!value || (found.size() == name.size() && begins_with(found, name))) return value;
  }
  return {};
}

std::optional<FormPart> read_part(std::string_view part) {
  const std::size_t end = part.find("\r\n\r\n");
  if (end == part.npos) return {};
  FormPart read;
  bool has_name = false;
  for (std::string_view headers = part.substr(0, end); !headers.empty();) {
    const std::size_t line_end = std::min(headers.find("\r\n"), headers.size());
    const std::string_view line = headers.substr(0, line_end);
    headers.remove_prefix(std::min(line_end + 2, headers.size()));
    if (!begins_with(line, "content-disposition:")) continue;
    const std::optional<std::string> name = parameter(line, "name");
    if (!name) return {};
    has_name = true;
    read.name = *name;
    read.file_name = parameter(line, "filename").value_or("");
  }
  read.content = part.substr(end + 4);
  return has_name ? std::optional(read) : std::nullopt;
}

}  // namespace

std::optional<std::vector<FormPart>> read_form(std::string_view content_type,
                                               std::string_view body) {
  if (!begins_with(content_type, "multipart/form-data")) return {};
  const std::optional<std::string> boundary = parameter(content_type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > 200) return {};
  const std::string first = "--" + *boundary, next = "\r\n" + first;
  std::size_t at = body.find(first);
  if (at == body.npos || (at > 0 && body.substr(at - std::min<std::size_t>(at, 2), 2) != "\r\n"))
    return {};
  at += first.size();
  std::vector<FormPart> parts;
  while (true) {
    if (body.substr(at, 2) == "--") return parts;
    const std::size_t begin = body.find("\r\n", at), end = body.find(next, at);
    if (begin == body.npos || end == body.npos || parts.size() >= kMostParts) return {};
    if (begin == end) return {};
    std::optional<FormPart> part = read_part(body.substr(begin + 2, end - begin - 2));
    if (!part) return {};
    parts.push_back(*std::move(part));
    at = end + next.size();
  }
}

const FormPart* find_part(const std::vector<FormPart>& parts, std::string_view name) {
  const auto found = std::ranges::find(parts, name, &FormPart::name);
  return found == parts.end() ? nullptr : &*found;
}

}  // namespace heddle::engine
