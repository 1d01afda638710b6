#include "string_nodes.h"

#include <vector>

#include "characters.h"
#include "python_format.h"
#include "python_text.h"

namespace heddle::loaders {
namespace {

// None where it is no JSON.
Value json_value(const std::string& text) {
  heddle_value* value = nullptr;
  heddle_status* failed =
      service<heddle_json_service>().parse(services.host, {text.data(), text.size()}, "", &value);
  if (failed == nullptr) return Value::adopt(value);
  services.host->status_free(failed);
  return {};
}

}  // namespace

void StringConcatenate::execute(Context& ctx) {
  ctx[out] = ctx[string_a] + ctx[delimiter] + ctx[string_b];
}

void StringSubstring::execute(Context& ctx) {
  ctx[out] = slice_of(ctx[string], ctx[start], ctx[end]);
}

void StringLength::execute(Context& ctx) {
  ctx[length] = std::int64_t(characters_of(ctx[string]).size());
}

void CaseConverter::execute(Context& ctx) {
  const std::string text = ctx[string], how = ctx[mode];
  ctx[out] = how == "UPPERCASE"   ? upper(text)
             : how == "lowercase" ? lower(text)
                                  : titled(text, how == "Capitalize");
}

void StringTrim::execute(Context& ctx) {
  const std::string how = ctx[mode];
  ctx[out] = stripped(ctx[string], how != "Right", how != "Left");
}

void StringReplace::execute(Context& ctx) {
  ctx[out] = replaced(ctx[string], ctx[find], ctx[replace]);
}

void StringContains::execute(Context& ctx) {
  const std::string text = ctx[string], part = ctx[substring];
  ctx[contains] = ctx[case_sensitive] ? text.find(part) != text.npos
                                      : lower(text).find(lower(part)) != text.npos;
}

void StringCompare::execute(Context& ctx) {
  std::string a = ctx[string_a], b = ctx[string_b];
  if (!ctx[case_sensitive]) {
    a = lower(a);
    b = lower(b);
  }
  const std::string how = ctx[mode];
  ctx[out] = how == "Equal" ? a == b : how == "Starts With" ? a.starts_with(b) : a.ends_with(b);
}

void JsonExtractString::execute(Context& ctx) {
  const Value json = json_value(ctx[json_string]);
  const Value found = json.is(HEDDLE_KIND_RECORD) ? json.field(ctx[key].c_str()) : Value();
  ctx[out] = found.is(HEDDLE_KIND_NONE) ? std::string() : python_str(found);
}

void StringFormat::execute(Context& ctx) {
  const auto& io = service<heddle_io_service>();
  ctx[out] = python_format_text(ctx[f_string], [&](const std::string& name) {
    for (std::uint32_t i = 0; i < io.extra_count(ctx.raw()); ++i)
      if (io.extra_name(ctx.raw(), i) == "values." + name)
        return Value::share(io.extra(ctx.raw(), i));
    throw Error(HEDDLE_INVALID_ARGUMENT, "f_string: nothing is linked to '" + name +
                                             "'. Link a value there, or write '{{' for a brace.");
  });
}

}  // namespace heddle::loaders
