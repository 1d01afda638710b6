#include "plugins/blocks/dynamic_inputs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace heddle::blocks {
namespace {

Value options_of(const heddle_port& port) {
  const std::string_view text = port.widget->extra;
  heddle_value* options = nullptr;
  check(service<heddle_json_service>().parse(services.host, {text.data(), text.size()}, port.name,
                                             &options));
  return Value::adopt(options);
}

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT, "input '" + name + "': " + what);
}

std::string limit_text(double number) {
  if (std::trunc(number) == number && std::fabs(number) < 1e15)
    return std::to_string(static_cast<std::int64_t>(number));
  return std::to_string(number);
}

double number_of(const Value& value, double otherwise) {
  switch (value.kind()) {
    case HEDDLE_KIND_BOOL:
      return value.as<bool>() ? 1 : 0;
    case HEDDLE_KIND_INT:
    case HEDDLE_KIND_UINT:
    case HEDDLE_KIND_FLOAT:
      return value.as<double>();
    default:
      return otherwise;
  }
}

void check_range(const std::string& name, double number, const Value& options) {
  const double least = number_of(options.field("min"), -HUGE_VAL),
               most = number_of(options.field("max"), HUGE_VAL);
  if (number < least)
    refuse(name,
           limit_text(number) + " is less than " + limit_text(least) + ", the least it may be");
  if (number > most)
    refuse(name, limit_text(number) + " is more than " + limit_text(most) + ", the most it may be");
}

// The names of all sockets in their order, and how many of them have to be there.
struct Sockets {
  std::vector<std::string> names;
  std::size_t required = 0;
};
Sockets sockets_of(const Value& pattern) {
  constexpr std::int64_t kMost = 100;  // ComfyUI's
  Sockets sockets;
  const Value names = pattern.field("names");
  if (names) {
    for (std::uint32_t i = 0; i < names.count(); ++i)
      sockets.names.push_back(names.item(i).as<std::string>());
  } else {
    const auto prefix = pattern.get<std::string>("prefix", "");
    const auto most = std::min(kMost, pattern.get<std::int64_t>("max", kMost));
    for (std::int64_t i = 0; i < most; ++i) sockets.names.push_back(prefix + std::to_string(i));
  }
  if (pattern.field("input").field("required").count() > 0)
    sockets.required = static_cast<std::size_t>(pattern.get<std::int64_t>("min", 0));
  return sockets;
}

}  // namespace

std::map<std::string, Value> extra_inputs(Context& ctx) {
  const auto& io = service<heddle_io_service>();
  std::map<std::string, Value> extra;
  for (std::uint32_t i = 0; i < io.extra_count(ctx.raw()); ++i) {
    const Value value = Value::share(io.extra(ctx.raw(), i));
    if (!value.is(HEDDLE_KIND_NONE)) extra.emplace(io.extra_name(ctx.raw(), i), value);
  }
  return extra;
}

std::vector<GrownInput> grown_inputs(Context& ctx, const heddle_port& port) {
  const Sockets sockets = sockets_of(options_of(port).field("template"));
  const std::map<std::string, Value> extra = extra_inputs(ctx);
  std::vector<GrownInput> grown;
  for (std::size_t i = 0; i < sockets.names.size(); ++i) {
    const std::string name = std::string(port.name) + "." + sockets.names[i];
    const auto found = extra.find(name);
    if (found != extra.end())
      grown.push_back({sockets.names[i], found->second});
    else if (i < sockets.required)
      refuse(name, "it is required: nothing is linked to it");
  }
  return grown;
}

std::vector<ToldInput> told_inputs(const Infer& question, const Input<Growing>& input) {
  const Value names = question.part(input, "");
  std::vector<ToldInput> told;
  for (const std::string& name : sockets_of(options_of(input.port).field("template")).names)
    for (std::uint32_t i = 0; i < names.count(); ++i)
      if (names.item(i).is(HEDDLE_KIND_STR) && names.item(i).text() == name)
        told.push_back({name, question.tensor(input, name)});
  return told;
}

std::vector<Value> grouped_rows(Context& ctx, const heddle_port& port) {
  const Value options = options_of(port);
  const std::string prefix = std::string(port.name) + ".";
  const auto most = options.get<std::int64_t>("max", 20);
  std::vector<Record> rows(static_cast<std::size_t>(options.get<std::int64_t>("min", 0)));
  for (const auto& [name, value] : extra_inputs(ctx)) {
    if (!name.starts_with(prefix)) continue;
    const std::string rest = name.substr(prefix.size());
    const std::size_t dot = rest.find('.');
    const std::string digits = rest.substr(0, dot),
                      field = dot == rest.npos ? "" : rest.substr(dot + 1);
    std::int64_t row = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), row);
    if (error != std::errc() || digits != std::to_string(row) || row < 0 || row >= most ||
        field.empty())
      refuse(name, "rows are called " + prefix + "0." + "name to " + prefix +
                       std::to_string(most - 1) + ".name");
    if (rows.size() <= static_cast<std::size_t>(row))
      rows.resize(static_cast<std::size_t>(row) + 1);
    rows[static_cast<std::size_t>(row)].set(field, value);
  }
  std::vector<Value> records;
  for (const Record& row : rows) records.push_back(row.value());
  return records;
}

ChosenVariant::ChosenVariant(Context& ctx, const Input<Variant>& input)
    : ChosenVariant(input.port.name, options_of(input.port), ctx[input], extra_inputs(ctx)) {}

ChosenVariant::ChosenVariant(std::string name, const Value& options, Value chosen,
                             std::map<std::string, Value> extra)
    : name_(std::move(name)), extra_(std::move(extra)) {
  if (!chosen.is(HEDDLE_KIND_STR)) refuse(name_, "expects the name of a variant. Give it as text.");
  key_ = chosen.as<std::string>();
  const Value variants = options.field("options");
  std::string known;
  for (std::uint32_t i = 0; i < variants.count(); ++i) {
    const auto key = variants.item(i).get<std::string>("key", "");
    if (key == key_) inputs_ = variants.item(i).field("inputs");
    known += (i > 0 ? ", " : "") + key;
  }
  if (!inputs_) refuse(name_, "there is no variant '" + key_ + "'. There: " + known + ".");
}

std::optional<ChosenVariant> told_variant(const Infer& question, const Input<Variant>& input) {
  const Value chosen = question.part(input, "");
  if (!chosen.is(HEDDLE_KIND_STR)) return {};
  const std::string name = input.port.name;
  const Value options = options_of(input.port), variants = options.field("options");
  std::map<std::string, Value> told;
  for (std::uint32_t i = 0; i < variants.count(); ++i) {
    if (variants.item(i).get<std::string>("key", "") != chosen.text()) continue;
    for (const char* section : {"required", "optional"}) {
      const Value children = variants.item(i).field("inputs").field(section);
      for (std::uint32_t c = 0; c < children.count(); ++c) {
        const Value spec = children.item(c).item(1);
        if (!spec.field("default") && !spec.field("options")) continue;  // a socket
        const Value value = question.part(input, children.key(c));
        if (!value) return {};
        told.emplace(name + "." + children.key(c), value);
      }
    }
  }
  return ChosenVariant(name, options, chosen, std::move(told));
}

Value ChosenVariant::spec(const char* child) const {
  for (const char* section : {"required", "optional"})
    if (const Value found = inputs_.field(section).field(child)) return found;
  throw Error(HEDDLE_INTERNAL, "'" + key_ + "' of '" + name_ + "' has no input '" + child + "'");
}

Value ChosenVariant::value(const char* child) const {
  const Value options = spec(child).item(1);
  const auto found = extra_.find(name_ + "." + child);
  if (found != extra_.end()) return found->second;
  if (const Value standard = options.field("default")) return standard;
  if (const Value names = options.field("options"); names.count() > 0)
    return names.item(0).is(HEDDLE_KIND_RECORD) ? names.item(0).field("key") : names.item(0);
  refuse(name_ + "." + child, "it is required: nothing is linked to it");
}

double ChosenVariant::number(const char* child) const {
  const Value given = value(child);
  const std::string name = name_ + "." + child;
  const double number = number_of(given, NAN);
  if (!std::isfinite(number)) refuse(name, "expects a number. Give one.");
  check_range(name, number, spec(child).item(1));
  return number;
}

std::int64_t ChosenVariant::whole(const char* child) const {
  return checked_cast<std::int64_t>(number(child), (name_ + "." + child).c_str());
}
double ChosenVariant::real(const char* child) const { return number(child); }
bool ChosenVariant::truth(const char* child) const { return number(child) != 0; }

std::string ChosenVariant::text(const char* child) const {
  const Value given = value(child);
  const std::string name = name_ + "." + child;
  if (!given.is(HEDDLE_KIND_STR)) refuse(name, "expects a text. Give one.");
  const auto text = given.as<std::string>();
  const Value names = spec(child).item(1).field("options");
  std::string known;
  for (std::uint32_t i = 0; i < names.count(); ++i) {
    const Value one = names.item(i);
    if (one.is(HEDDLE_KIND_STR) && one.text() == text) return text;
    if (one.is(HEDDLE_KIND_STR)) known += (known.empty() ? "" : ", ") + one.as<std::string>();
  }
  if (names.count() > 0) refuse(name, "there is no '" + text + "'. There: " + known + ".");
  return text;
}

ChosenVariant ChosenVariant::nested(const char* child) const {
  return {name_ + "." + child, spec(child).item(1), value(child), extra_};
}

}  // namespace heddle::blocks
