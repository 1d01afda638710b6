#include "engine/files/pickle.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/files/pickle_ops.h"

namespace heddle::engine {
namespace {

constexpr std::string_view kPickleDamaged =
    " The file is damaged or was written by a faulty program; fetch it again.";
constexpr std::string_view kOrderedDict = "collections.OrderedDict";
constexpr int kNewestPickle = 5;
constexpr std::size_t kMostPickleMarks = 1000;  // collections in each other, while they are made

class PickleReader {
 public:
  PickleReader(std::span<const std::byte> bytes, std::string_view where,
               std::span<const std::string_view> known)
      : bytes_(bytes.first(std::min(bytes.size(), kMaxPickle))), where_(where), known_(known) {}

  Pickle read() {
    using namespace pickle_op;
    for (;;) {
      op_at_ = at_;
      const auto op = take<std::uint8_t>();
      if (op == kStop) break;
      if (!push_value(op) && !push_collection(op) && !change(op)) refuse_op(op);
    }
    pickle_.root = pop();
    pickle_.size = at_;
    return std::move(pickle_);
  }

 private:
  // ---- faults ----

  std::string place() const { return cat(where_, ": byte ", op_at_, " of the pickle: "); }
  Error refuse(std::string_view what) const {
    return Error(Code::invalid_argument, cat(place(), what, kPickleDamaged));
  }
  Error refuse_foreign(std::string_view what) const {
    return Error(Code::unsupported,
                 cat(place(), what,
                     ". Only tensors, dicts, lists, numbers and texts are read, and nothing of a "
                     "file is run; if you trust it, convert it to safetensors."));
  }
  [[noreturn]] void refuse_op(std::uint8_t op) const {
    const std::string_view name = foreign_op(op);
    if (!name.empty()) throw refuse_foreign(cat("it ", name));
    throw refuse(cat("there is no opcode ", int(op), "."));
  }

  // ---- bytes ----

  std::string_view take_text(std::uint64_t size) {
    if (size > bytes_.size() - at_)
      throw refuse(cat("it wants ", size, " more bytes, but only ", bytes_.size() - at_,
                       " are left (at most ", kMaxPickle, " in all)."));
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return text;
  }
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, take_text(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view take_line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_,
                                bytes_.size() - at_);
    const std::size_t end = rest.find('\n');
    if (end == rest.npos) throw refuse("a name has no end.");
    at_ += end + 1;
    return rest.substr(0, end);
  }

  // ---- the stack ----

  std::uint32_t add(PickleValue value) {
    if (pickle_.values.size() >= kMaxPickledValues)
      throw refuse(cat("it has more than ", kMaxPickledValues, " values, which no model has."));
    pickle_.values.push_back(std::move(value));
    return std::uint32_t(pickle_.values.size() - 1);
  }
  void push(PickleValue value) { stack_.push_back(add(std::move(value))); }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::uint32_t top() const {
    if (stack_.size() <= floor()) throw refuse("it takes a value that is not there.");
    return stack_.back();
  }
  std::uint32_t pop() {
    const std::uint32_t index = top();
    stack_.pop_back();
    return index;
  }
  std::vector<std::uint32_t> pop_to_mark() {
    if (marks_.empty()) throw refuse("it takes values from a mark that is not there.");
    const auto begin = stack_.begin() + std::ptrdiff_t(marks_.back());
    std::vector<std::uint32_t> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  PickleValue& at_top(PickleKind kind, std::string_view what) {
    PickleValue& value = pickle_.values[top()];
    if (value.kind != kind)
      throw refuse_foreign(cat("it ", what, " ", pickle_kind_name(value.kind)));
    return value;
  }

  // ---- opcodes ----

  bool push_value(std::uint8_t op) {
    using namespace pickle_op;
    switch (op) {
      case kNone:
        return push({}), true;
      case kTrue:
      case kFalse:
        return push({.kind = PickleKind::boolean, .number = op == kTrue}), true;
      case kBinInt:
        return push_number(take<std::int32_t>()), true;
      case kBinInt1:
        return push_number(take<std::uint8_t>()), true;
      case kBinInt2:
        return push_number(take<std::uint16_t>()), true;
      case kLong1:
        return push_long(take<std::uint8_t>()), true;
      case kLong4:
        return push_long(take<std::uint32_t>()), true;
      case kBinFloat:
        take<double>();
        return push({.kind = PickleKind::real}), true;
      case kBinString:
      case kBinUnicode:
        return push_text(PickleKind::text, take<std::uint32_t>()), true;
      case kShortBinString:
      case kShortUnicode:
        return push_text(PickleKind::text, take<std::uint8_t>()), true;
      case kUnicode8:
        return push_text(PickleKind::text, take<std::uint64_t>()), true;
      case kBinBytes:
        return push_text(PickleKind::bytes, take<std::uint32_t>()), true;
      case kShortBinBytes:
        return push_text(PickleKind::bytes, take<std::uint8_t>()), true;
      case kBytes8:
        return push_text(PickleKind::bytes, take<std::uint64_t>()), true;
    }
    return false;
  }

  void push_number(std::int64_t number) { push({.kind = PickleKind::integer, .number = number}); }
  void push_text(PickleKind kind, std::uint64_t size) {
    push({.kind = kind, .text = take_text(size)});
  }
  void push_long(std::uint64_t size) {
    PickleValue value{.kind = PickleKind::integer, .text = take_text(size)};
    if (size <= sizeof value.number) {
      const bool is_negative = size > 0 && (value.text.back() & 0x80) != 0;
      value.number = is_negative ? -1 : 0;
      std::memcpy(&value.number, value.text.data(), size);
      value.text = {};
    }
    push(std::move(value));
  }

  bool push_collection(std::uint8_t op) {
    using namespace pickle_op;
    switch (op) {
      case kMark:
        if (marks_.size() >= kMostPickleMarks)
          throw refuse(cat("it is nested deeper than ", kMostPickleMarks, " collections."));
        return marks_.push_back(stack_.size()), true;
      case kEmptyTuple:
        return push({.kind = PickleKind::tuple}), true;
      case kEmptyList:
        return push({.kind = PickleKind::list}), true;
      case kEmptyDict:
        return push({.kind = PickleKind::dict}), true;
      case kTuple:
        return push({.kind = PickleKind::tuple, .items = pop_to_mark()}), true;
      case kTuple1:
      case kTuple2:
      case kTuple3: {
        std::vector<std::uint32_t> items(op - kTuple1 + 1);
        for (std::size_t i = items.size(); i-- > 0;) items[i] = pop();
        return push({.kind = PickleKind::tuple, .items = std::move(items)}), true;
      }
      case kAppend: {
        const std::uint32_t item = pop();
        return at_top(PickleKind::list, "appends to").items.push_back(item), true;
      }
      case kAppends: {
        const auto items = pop_to_mark();
        auto& list = at_top(PickleKind::list, "appends to").items;
        return list.insert(list.end(), items.begin(), items.end()), true;
      }
      case kSetItem: {
        const std::uint32_t value = pop(), key = pop();
        auto& dict = at_top(PickleKind::dict, "sets an item of").items;
        return dict.insert(dict.end(), {key, value}), true;
      }
      case kSetItems: {
        const auto items = pop_to_mark();
        if (items.size() % 2 != 0) throw refuse("a key of a dict has no value.");
        auto& dict = at_top(PickleKind::dict, "sets items of").items;
        return dict.insert(dict.end(), items.begin(), items.end()), true;
      }
    }
    return false;
  }

  bool change(std::uint8_t op) {
    using namespace pickle_op;
    switch (op) {
      case kProtocol:
        if (const auto protocol = take<std::uint8_t>(); protocol > kNewestPickle)
          throw refuse(cat("the protocol ", int(protocol), " is not known, only up to ",
                           kNewestPickle, "."));
        return true;
      case kFrame:
        take<std::uint64_t>();
        return true;
      case kPop:
        return pop(), true;
      case kPopMark:
        return pop_to_mark(), true;
      case kBinPut:
        return put(take<std::uint8_t>()), true;
      case kLongBinPut:
        return put(take<std::uint32_t>()), true;
      case kMemoize:
        return put(std::uint32_t(memo_.size())), true;
      case kBinGet:
        return get(take<std::uint8_t>()), true;
      case kLongBinGet:
        return get(take<std::uint32_t>()), true;
      case kGlobal: {
        const std::string_view module = take_line(), name = take_line();
        return push_global(module, name), true;
      }
      case kStackGlobal: {
        const std::uint32_t name = pop(), module = pop();
        return push_global(pickle_[module].text, pickle_[name].text), true;
      }
      case kBinPersistent:
        return push({.kind = PickleKind::persistent, .items = {pop()}}), true;
      case kReduce:
        return call(), true;
      case kBuild:  // attributes of the object below
        pop();
        if (const PickleKind kind = pickle_[top()].kind;
            kind != PickleKind::dict && kind != PickleKind::call)
          throw refuse_foreign(cat("it sets the state of ", pickle_kind_name(kind)));
        return true;
    }
    return false;
  }

  void put(std::uint32_t number) {
    memo_[number] = top();
    if (memo_.size() > kMaxPickledValues) throw refuse("it remembers more values than any model.");
  }
  void get(std::uint32_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) throw refuse(cat("it has no value with the number ", number, "."));
    if (stack_.size() >= kMaxPickledValues) throw refuse("its stack is larger than any model's.");
    stack_.push_back(found->second);
  }

  void push_global(std::string_view module, std::string_view name) {
    const std::string whole = cat(module, ".", name);
    if (whole == kOrderedDict)
      return push({.kind = PickleKind::global, .number = std::int64_t(known_.size())});
    const auto found = std::find(known_.begin(), known_.end(), whole);
    if (found == known_.end()) throw refuse_foreign(cat("it asks Python for ", quote(whole)));
    push({.kind = PickleKind::global, .number = found - known_.begin()});
  }

  void call() {
    const std::uint32_t arguments = pop(), function = pop();
    if (pickle_[function].kind != PickleKind::global)
      throw refuse_foreign(cat("it calls ", pickle_kind_name(pickle_[function].kind)));
    if (pickle_[arguments].kind != PickleKind::tuple)
      throw refuse(
          cat("a call has ", pickle_kind_name(pickle_[arguments].kind), " instead of arguments."));
    if (std::size_t(pickle_[function].number) == known_.size()) {
      if (pickle_[arguments].items.empty()) return push({.kind = PickleKind::dict});
      throw refuse_foreign("it makes an OrderedDict of a list, as Python 2 did");
    }
    push({.kind = PickleKind::call, .items = {function, arguments}});
  }

  std::span<const std::byte> bytes_;
  std::string_view where_;
  std::span<const std::string_view> known_;
  std::size_t at_ = 0;
  std::size_t op_at_ = 0;  // of the opcode that is being carried out
  std::vector<std::uint32_t> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint32_t, std::uint32_t> memo_;
  Pickle pickle_;
};

}  // namespace

std::string_view pickle_kind_name(PickleKind kind) {
  constexpr std::string_view kNames[] = {
      "None",    "a truth value", "an integer", "a number", "a text",    "bytes",
      "a tuple", "a list",        "a dict",     "a name",   "an object", "an outside object"};
  return kNames[std::size_t(kind)];
}

Pickle read_pickle(std::span<const std::byte> bytes, std::string_view where,
                   std::span<const std::string_view> known) {
  return PickleReader(bytes, where, known).read();
}

}  // namespace heddle::engine
