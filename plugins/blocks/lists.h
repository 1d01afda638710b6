// plugins/blocks/lists.h - lists and records of values, changed: the values that are given stay as
// they are. Any thread.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <heddle/value.hpp>

namespace heddle::blocks {

// No list: none.
inline std::vector<Value> items_of(const Value& list) {
  std::vector<Value> items;
  for (std::uint32_t i = 0; i < list.count(); ++i) items.push_back(list.item(i));
  return items;
}

inline Value appended(const Value& list, const Value& item) {
  std::vector<Value> items = items_of(list);
  items.push_back(item);
  return list_of(items);
}

inline Record without_fields(const Value& record, std::initializer_list<std::string_view> names) {
  Record kept;
  for (std::uint32_t i = 0; i < record.count(); ++i)
    if (std::ranges::find(names, std::string_view(record.key(i))) == names.end())
      kept.set(record.key(i), record.item(i));
  return kept;
}

// A CONDITIONING whose entries lack a field.
inline Value without_field(const Value& conditioning, std::string_view name) {
  std::vector<Value> entries;
  for (const Value& entry : items_of(conditioning))
    entries.push_back(without_fields(entry, {name}).value());
  return list_of(entries);
}

}  // namespace heddle::blocks
