// Python's pickles, read as what they say and never carried out: the values of a pickle as a tree
// (a graph, where one stands in several places). What Python would call is kept as a call, which
// nobody makes; what a caller does not list may not even be named. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace heddle::engine {

inline constexpr std::size_t kMaxPickle = 32 << 20;        // bytes
inline constexpr std::size_t kMaxPickledValues = 1 << 20;  // of one pickle

enum class PickleKind : std::uint8_t {
  none,
  boolean,     // number: 0 or 1
  integer,     // number; text: its bytes, little-endian, where it does not fit
  real,        // only that it is one: nobody reads it here
  text,        // text
  bytes,       // text
  tuple,       // items
  list,        // items
  dict,        // items: key, value, key, value, ...; the last of equal keys counts
  global,      // number: index of its name in `known`
  call,        // items: the global, then its arguments, a tuple
  persistent,  // items: one value, which names an object outside the pickle
};

std::string_view pickle_kind_name(PickleKind kind);  // "a dict": for messages

struct PickleValue {
  PickleKind kind = PickleKind::none;
  std::int64_t number = 0;
  std::string_view text = {};             // in the pickle's bytes
  std::vector<std::uint32_t> items = {};  // indices into Pickle::values
};

struct Pickle {
  std::vector<PickleValue> values;
  std::uint32_t root = 0;  // of values
  std::size_t size = 0;    // bytes of the pickle, its end included

  const PickleValue& operator[](std::uint32_t index) const { return values[index]; }
};

// Reads the pickle of protocol 2 to 5 that `bytes` begin with. `known`: the Python names
// ("torch.FloatStorage") that it may hold; "collections.OrderedDict" is always known, and a call of
// it is a dict. Attributes that Python would set on an object are left out. Values may hold each
// other in circles: whoever walks them needs a limit. Throws Error(unsupported) for any other name,
// and for whatever is no value of the kinds above; Error(invalid_argument) for a pickle that is
// damaged, cut off or larger than the limits. Messages start with `where` and give the byte.
Pickle read_pickle(std::span<const std::byte> bytes, std::string_view where,
                   std::span<const std::string_view> known);

}  // namespace heddle::engine
