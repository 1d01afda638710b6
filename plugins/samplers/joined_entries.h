// Entries that areas add (add_opposites) read the text of one entry, and have the ControlNets and
// the boxes of another, that with the area, as in ComfyUI. Both are joined to one more entry. Pure;
// any thread.
#pragma once

#include <vector>

#include "cond_scope.h"
#include "plugins/blocks/entry_shapes.h"

namespace heddle::samplers {

// `text` with the ControlNets and boxes of `other` in the place of its own.
Value with_controls_of(const Value& text, const Value& other);

// entries: by list and item, as lists name them. Where an entry's text and ControlNets are of two,
// one that joins them is added to the list of the text, and `lists` names it instead.
void join_entries(ScopedLists& lists, std::vector<std::vector<Value>>& entries);
// The same by shapes.
void join_entries(ScopedLists& lists, std::vector<std::vector<blocks::EntryShapes>>& entries);

}  // namespace heddle::samplers
