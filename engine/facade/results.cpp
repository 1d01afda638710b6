// What a run gives: values asked for, in the caller's types.
#include <algorithm>
#include <charconv>
#include <span>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"
#include "engine/facade/data.h"
#include "engine/tensor/dlpack.h"
#include "engine/tensor/gather.h"

namespace heddle {

namespace {

// A field of a record, an element of a list ("0"), or either of such a part ("0.samples").
const heddle_value* part_of(const heddle_value* value, std::string_view path) {
  if (path.empty() || value == nullptr) return value;
  const auto inside = [&](std::string_view name) -> const heddle_value* {
    if (const auto* record = std::get_if<engine::Record>(&value->content)) {
      const engine::Value* field = record->find(name);
      return field == nullptr ? nullptr : field->get();
    }
    const auto* list = std::get_if<engine::List>(&value->content);
    std::size_t index = 0;
    const char* end = name.data() + name.size();
    const bool is_index = std::from_chars(name.data(), end, index).ptr == end;
    return list != nullptr && is_index && index < list->items.size() ? list->items[index].get()
                                                                     : nullptr;
  };
  if (const heddle_value* whole = inside(path)) return whole;
  const std::size_t dot = path.find('.');
  return dot == path.npos ? nullptr : part_of(inside(path.substr(0, dot)), path.substr(dot + 1));
}

// What `read` makes of a tensor, or of a record's field.
template <class F>
auto read_tensor(const Results::Data& data, std::string_view output, std::string_view field,
                 F&& read) {
  return translate_errors([&] {
    return data.fetched->read(output, [&](const heddle_value& whole) {
      const heddle_value* value = part_of(&whole, field);
      if (value == nullptr)
        throw engine::Error(engine::Code::not_found,
                            engine::cat(output, " is ", engine::describe(whole),
                                        ": it has no field ", engine::quote(field)));
      return read(engine::get_tensor(*value));
    });
  });
}

// A row-major copy of the elements, which are `bytes` in all.
void read_bytes(const engine::Tensor& tensor, void* to, std::size_t bytes) {
  if (auto* memory = dynamic_cast<engine::DeviceMemory*>(tensor->storage.get()))
    memory->state().read(tensor, to, bytes);
  else
    engine::gather(tensor->info, tensor->data(), static_cast<std::byte*>(to));
}

std::vector<float> read_floats(const engine::Tensor& tensor) {
  if (tensor->info.dtype != HEDDLE_F32)
    throw engine::Error(engine::Code::unsupported,
                        engine::cat(engine::describe(tensor->info), " is not f32"));
  std::vector<float> values(std::size_t(engine::element_count(tensor->info)));
  if (values.empty()) return values;
  read_bytes(tensor, values.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace

const heddle_value* FetchedValues::find(const Values& values, std::string_view output) {
  if (values.has_gone)
    throw engine::Error(engine::Code::unsupported,
                        engine::cat("the value ", engine::quote(output),
                                    " went with the Engine of its run. Read results while it is "
                                    "there, or keep what Results::tensor() gives"));
  const auto found = values.by_output.find(output);
  if (found == values.by_output.end())
    throw engine::Error(engine::Code::not_found,
                        engine::cat("the value ", engine::quote(output),
                                    " was not asked for with StartOptions::fetch"));
  return found->second.get();
}

void FetchedValues::let_go() {
  const auto values = values_.lock();
  values->has_gone = true;
  values->by_output.clear();
}

std::vector<std::string> Results::files() const { return data_->result.files; }
std::vector<Stage> Results::stages() const { return data_->stages; }
std::vector<std::string> Results::remarks() const { return data_->remarks; }
std::string Results::ui() const {
  return translate_errors([&] { return engine::write_json(data_->ui); });
}

std::vector<float> Results::floats(std::string_view output, std::string_view field) const {
  return read_tensor(*data_, output, field, read_floats);
}

std::vector<std::int64_t> Results::shape(std::string_view output, std::string_view field) const {
  return read_tensor(*data_, output, field, [](const engine::Tensor& tensor) {
    const heddle_tensor_info& info = tensor->info;
    return std::vector<std::int64_t>(info.shape, info.shape + info.rank);
  });
}

DLManagedTensor* Results::tensor(std::string_view output, std::string_view field) const {
  return read_tensor(*data_, output, field, [](const engine::Tensor& tensor) {
    const heddle_tensor_info& info = tensor->info;
    const engine::Tensor copy =
        engine::make_host_tensor(engine::make_info(info.dtype, std::span(info.shape, info.rank)));
    if (const std::uint64_t bytes = engine::dense_bytes(info); bytes > 0)
      read_bytes(tensor, copy->data(), bytes);
    return engine::to_dlpack(copy);
  });
}

std::string Results::text(std::string_view output) const {
  return translate_errors([&] {
    return data_->fetched->read(output, [](const heddle_value& value) {
      const auto* text = std::get_if<std::string>(&value.content);
      return text != nullptr ? *text : engine::write_json(engine::to_json(value));
    });
  });
}

Image Results::image(std::string_view output, std::size_t index) const {
  return read_tensor(*data_, output, "", [&](const engine::Tensor& tensor) {
    if (tensor->info.rank != 4 || index >= std::size_t(tensor->info.shape[0]))
      throw engine::Error(engine::Code::invalid_argument,
                          engine::cat(output, " is ", engine::describe(tensor->info),
                                      ": it has no picture ", index));
    const std::vector<float> all = read_floats(tensor);
    Image image{
        int(tensor->info.shape[2]), int(tensor->info.shape[1]), int(tensor->info.shape[3]), {}};
    const std::size_t size =
        std::size_t(image.width) * std::size_t(image.height) * std::size_t(image.channels);
    image.pixels.assign(all.begin() + std::ptrdiff_t(index * size),
                        all.begin() + std::ptrdiff_t((index + 1) * size));
    return image;
  });
}

void Image::save_ppm(const std::filesystem::path& path) const {
  translate_errors([&] {
    std::string file = engine::cat("P6\n", width, " ", height, "\n255\n");
    for (std::size_t i = 0; i < pixels.size(); i += std::size_t(channels))
      for (int c = 0; c < 3; ++c)
        file += char(std::clamp(pixels[i + std::size_t(std::min(c, channels - 1))] * 255.0f + 0.5f,
                                0.0f, 255.0f));
    engine::write_file(path, file, engine::Lasting::yes);
  });
}

}  // namespace heddle
