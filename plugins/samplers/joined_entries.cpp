#include "joined_entries.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "control_value.h"

namespace heddle::samplers {
namespace {

bool is_inherited(std::string_view key) {
  return std::ranges::any_of(kInherited, [&](const char* known) { return key == known; });
}

bool has_any(const Value& entry) {
  return std::ranges::any_of(kInherited, [&](const char* key) { return entry.has(key); });
}

const Value& told_record(const Value& entry) { return entry; }
const Value& told_record(const blocks::EntryShapes& entry) { return entry.scope; }
Value joined_record(const Value& text, const Value& other) { return with_controls_of(text, other); }
blocks::EntryShapes joined_record(blocks::EntryShapes text, const blocks::EntryShapes& other) {
  text.scope = with_controls_of(text.scope, other.scope);
  return text;
}

template <class Entry>
void join_all(ScopedLists& lists, std::vector<std::vector<Entry>>& entries) {
  using Place = std::pair<std::size_t, std::size_t>;
  std::map<std::pair<Place, Place>, std::size_t> made;
  for (std::vector<ScopedEntry>& list : lists)
    for (ScopedEntry& entry : list) {
      const Place text{entry.list, entry.item}, other{entry.control_list, entry.control_item};
      if (text == other) continue;
      const Entry of_text = entries[text.first][text.second],
                  of_other = entries[other.first][other.second];
      if (!has_any(told_record(of_text)) && !has_any(told_record(of_other))) continue;
      const auto [found, is_new] = made.try_emplace({text, other}, entries[text.first].size());
      if (is_new) entries[text.first].push_back(joined_record(of_text, of_other));
      entry.item = found->second;
    }
}

}  // namespace

Value with_controls_of(const Value& text, const Value& other) {
  Record record;
  for (std::uint32_t i = 0; i < text.count(); ++i)
    if (!is_inherited(text.key(i))) record.set(text.key(i), text.item(i));
  for (const char* key : kInherited)
    if (other.has(key)) record.set(key, other.field(key));
  return record.value();
}

void join_entries(ScopedLists& lists, std::vector<std::vector<Value>>& entries) {
  join_all(lists, entries);
}

void join_entries(ScopedLists& lists, std::vector<std::vector<blocks::EntryShapes>>& entries) {
  join_all(lists, entries);
}

}  // namespace heddle::samplers
