// heddle/plugin.hpp - the border between a C++ plugin and the engine: errors, services, the entry
// symbol. Header-only; included by the other headers of the SDK. A plugin throws; guard() makes a
// status of it.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "abi/model.h"

// Hidden: two plugins loaded into one process must not share these inline variables.
namespace [[gnu::visibility("hidden")]] heddle {

class Error : public std::runtime_error {
 public:
  Error(heddle_code with, const std::string& what) : std::runtime_error(what), code(with) {}
  heddle_code code;
};

// A status the engine gave us, on its way back to the engine. Keeps the original object.
struct Failed {
  heddle_status* status;
};

inline void check(heddle_status* status) {
  if (status != nullptr) throw Failed{status};
}

// The host, and the tables that almost every line uses; filled by init(), constant afterwards.
struct Services {
  const heddle_host* host = nullptr;
  const heddle_value_service* value = nullptr;
  const heddle_tensor_service* tensor = nullptr;
};
inline Services services;

// What a table is called, by its type.
template <class Service>
inline constexpr const char* service_name = nullptr;
template <>
inline constexpr const char* service_name<heddle_registry_service> = HEDDLE_SERVICE_REGISTRY;
template <>
inline constexpr const char* service_name<heddle_value_service> = HEDDLE_SERVICE_VALUE;
template <>
inline constexpr const char* service_name<heddle_tensor_service> = HEDDLE_SERVICE_TENSOR;
template <>
inline constexpr const char* service_name<heddle_json_service> = HEDDLE_SERVICE_JSON;
template <>
inline constexpr const char* service_name<heddle_io_service> = HEDDLE_SERVICE_IO;
template <>
inline constexpr const char* service_name<heddle_call_service> = HEDDLE_SERVICE_CALL;
template <>
inline constexpr const char* service_name<heddle_report_service> = HEDDLE_SERVICE_REPORT;
template <>
inline constexpr const char* service_name<heddle_preview_service> = HEDDLE_SERVICE_PREVIEW;
template <>
inline constexpr const char* service_name<heddle_cache_service> = HEDDLE_SERVICE_CACHE;
template <>
inline constexpr const char* service_name<heddle_ops_service> = HEDDLE_SERVICE_OPS;
template <>
inline constexpr const char* service_name<heddle_block_service> = HEDDLE_SERVICE_BLOCK;
template <>
inline constexpr const char* service_name<heddle_session_service> = HEDDLE_SERVICE_SESSION;
template <>
inline constexpr const char* service_name<heddle_completion_service> = HEDDLE_SERVICE_COMPLETION;
template <>
inline constexpr const char* service_name<heddle_expansion_service> = HEDDLE_SERVICE_EXPANSION;
template <>
inline constexpr const char* service_name<heddle_workflow_service> = HEDDLE_SERVICE_WORKFLOW;
template <>
inline constexpr const char* service_name<heddle_resume_service> = HEDDLE_SERVICE_RESUME;
template <>
inline constexpr const char* service_name<heddle_folders_service> = HEDDLE_SERVICE_FOLDERS;
template <>
inline constexpr const char* service_name<heddle_files_service> = HEDDLE_SERVICE_FILES;
template <>
inline constexpr const char* service_name<heddle_infer_service> = HEDDLE_SERVICE_INFER;
template <>
inline constexpr const char* service_name<heddle_validation_service> = HEDDLE_SERVICE_VALIDATION;
template <>
inline constexpr const char* service_name<heddle_cost_service> = HEDDLE_SERVICE_COST;
template <>
inline constexpr const char* service_name<heddle_checkpoint_service> = HEDDLE_SERVICE_CHECKPOINT;
template <>
inline constexpr const char* service_name<heddle_graph_service> = HEDDLE_SERVICE_GRAPH;
template <>
inline constexpr const char* service_name<heddle_model_service> = HEDDLE_SERVICE_MODEL;

// A table by its name; throws when this engine does not have it.
inline const void* find_service(const char* name) {
  const heddle_host& host = *services.host;
  const void* table = host.service(&host, name);
  if (table == nullptr)
    throw Error(HEDDLE_UNSUPPORTED,
                std::string("this engine (") + host.name + " " + host.version + ", ABI " +
                    std::to_string(host.abi_major) + "." + std::to_string(host.abi_minor) +
                    ") has no service '" + name +
                    "', which the plugin needs. Build the plugin again with this engine's SDK");
  return table;
}

namespace detail {

// One table that this plugin uses. They are listed while the library is loaded, and all of them are
// looked up by init().
struct UsedService {
  UsedService(const char* of, bool required) : name(of), is_required(required), next(first) {
    first = this;
  }
  const char* const name;
  const bool is_required;
  const void* table = nullptr;
  UsedService* const next;
  static inline UsedService* first = nullptr;
};
template <class Service, bool is_required>
struct Used {
  static_assert(service_name<Service> != nullptr, "no service of the ABI has this type");
  static inline UsedService entry{service_name<Service>, is_required};
};

inline void look_up_services() {
  for (UsedService* used = UsedService::first; used != nullptr; used = used->next)
    used->table = used->is_required ? find_service(used->name)
                                    : services.host->service(services.host, used->name);
  services.value = static_cast<const heddle_value_service*>(find_service(HEDDLE_SERVICE_VALUE));
  services.tensor = static_cast<const heddle_tensor_service*>(find_service(HEDDLE_SERVICE_TENSOR));
}
inline void forget_services() {
  for (UsedService* used = UsedService::first; used != nullptr; used = used->next)
    used->table = nullptr;
  services = {};
}

}  // namespace detail

// A table that this plugin cannot do without: where this call stands in a source or in a header
// that it includes, an engine without the service refuses the plugin when it is loaded. Costs no
// look-up. Not before init().
template <class Service>
const Service& service() {
  return *static_cast<const Service*>(detail::Used<Service, true>::entry.table);
}

// The same for what is nice to have: nullptr where this engine does not have it.
template <class Service>
const Service* optional_service() {
  return static_cast<const Service*>(detail::Used<Service, false>::entry.table);
}

inline void log(heddle_level level, const std::string& message) {
  services.host->log(services.host, level, message.c_str());
}

// Runs body; what it throws becomes a status. For every function the engine calls.
template <class F>
heddle_status* guard(F&& body) noexcept {
  const heddle_host* host = services.host;
  try {
    body();
    return nullptr;
  } catch (const Failed& f) {
    return f.status;
  } catch (const Error& e) {
    return host->fail(host, e.code, e.what());
  } catch (const std::bad_alloc&) {
    return host->fail(host, HEDDLE_OUT_OF_MEMORY, "host memory is exhausted");
  } catch (const std::exception& e) {
    return host->fail(host, HEDDLE_INTERNAL, e.what());
  } catch (...) {
    return host->fail(host, HEDDLE_INTERNAL, "unknown exception");
  }
}

// A plugin is a list of types. Each kind of thing a type can be (node, model family, ...)
// specialises Provide with a `kind` string and a `desc` pointer; each goes to the list of its kind.
template <class T>
struct Provide;

template <class... T>
struct Plugin {
  static heddle_status* init(const heddle_host* host) {
    services.host = host;
    return guard([] { detail::look_up_services(); });
  }
  static void deinit() { detail::forget_services(); }

  static const heddle_list* provide(const char* kind) {
    const std::string_view asked(kind);
    const heddle_list* found = nullptr;
    (void)((asked == Provide<T>::kind ? (found = list_for<T>(), true) : false) || ...);
    return found;
  }

 private:
  template <class Q>
  static const heddle_list* list_for() {
    if constexpr (requires { Provide<Q>::list(); })
      return Provide<Q>::list();
    else
      return list_of<Provide<Q>::tag>();
  }
  template <int Tag>
  static const heddle_list* list_of() {
    static constexpr std::size_t count = (std::size_t{Provide<T>::tag == Tag} + ... + 0);
    static constexpr auto items = [] {
      std::array<const void*, count> all{};
      std::size_t i = 0;
      auto place = [&]<class Q>(Q*) {
        if constexpr (Provide<Q>::tag == Tag) all[i++] = Provide<Q>::desc;
      };
      (place(static_cast<T*>(nullptr)), ...);
      return all;
    }();
    static constexpr heddle_list list{std::uint32_t(count), items.data()};
    return &list;
  }
};

// Any other kind of thing, such as those of heddle/diffusion/*.h: a type that names the kind and
// lists its descs. One type per kind and plugin.
//   struct Samplers {
//     static constexpr std::string_view kind = HEDDLE_SAMPLERS;
//     static const heddle_list* list() { return heddle::descs<kEuler, kHeun>(); }
//   };
template <class T>
concept IsExtension = requires {
  { T::kind } -> std::convertible_to<std::string_view>;
  { T::list() } -> std::same_as<const heddle_list*>;
};

template <IsExtension T>
struct Provide<T> {
  static constexpr int tag = 0;  // of its own: never in the list of another type
  static constexpr std::string_view kind = T::kind;
  static constexpr const void* desc = nullptr;
  static const heddle_list* list() { return T::list(); }
};

// A list of descs in static storage.
template <const auto&... Desc>
const heddle_list* descs() {
  static constexpr std::array<const void*, sizeof...(Desc)> items{&Desc...};
  static constexpr heddle_list list{std::uint32_t(items.size()), items.data()};
  return &list;
}

// Visits what all loaded plugins provide of a kind, in load order, until the visitor says true.
template <class Desc, class F>
const Desc* find_provided(const char* kind, F&& matches) {
  const auto& registry = service<heddle_registry_service>();
  for (std::uint32_t i = 0; i < registry.count(services.host, kind); ++i) {
    const auto* desc = static_cast<const Desc*>(registry.item(services.host, kind, i));
    if (desc != nullptr && matches(*desc)) return desc;
  }
  return nullptr;
}

}  // namespace heddle

#define HEDDLE_PLUGIN(id, version, ...)                         \
  extern "C" HEDDLE_EXPORT const heddle_plugin heddle_entry = { \
      sizeof(heddle_plugin),                                    \
      HEDDLE_ABI_MAJOR,                                         \
      HEDDLE_ABI_MINOR,                                         \
      id,                                                       \
      version,                                                  \
      &heddle::Plugin<__VA_ARGS__>::provide,                    \
      &heddle::Plugin<__VA_ARGS__>::init,                       \
      &heddle::Plugin<__VA_ARGS__>::deinit};
