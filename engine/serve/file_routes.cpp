// Files go out and come in: /view, /upload/image, /upload/mask, the front end.
#include <algorithm>
#include <charconv>
#include <memory>

#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"
#include "engine/serve/converted_picture.h"
#include "engine/serve/multipart.h"
#include "engine/serve/pack_folders.h"
#include "engine/serve/served_files.h"
#include "engine/serve/service.h"
#include "engine/serve/v1.h"

namespace heddle::engine {
namespace {

namespace fs = std::filesystem;

constexpr FileKind kUploadedFile{"an uploaded file", std::uint64_t{1} << 30};
constexpr int kMostCopies = 10'000;  // of one name

[[noreturn]] void refuse(unsigned status) { throw Refused{HttpResponse{status, {}, "", {}}}; }

std::optional<fs::path> folder_of(const heddle::Engine& engine, std::string_view kind) {
  if (kind != "input" && kind != "output" && kind != "temp") return {};
  const std::vector<fs::path> places = engine.folder_places(kind);
  return places.empty() ? std::nullopt : std::optional(places.front());
}

// In quotes; what could end them or the line is left out.
std::string disposition(std::string_view name, bool is_attachment) {
  std::string text = is_attachment ? "attachment; filename=\"" : "filename=\"";
  for (const char c : name)
    if (c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20) text += c;
  return text + "\"";
}

// Pages and programs of somebody else's would run as if they were ours.
bool is_dangerous(std::string_view type) {
  return type == "text/html" || type == "application/xhtml+xml" || type == "text/javascript" ||
         type == "text/css" || type == "image/svg+xml";
}

// A file that a request names, below one of the engine's folders.
struct NamedFile {
  fs::path path;
  std::string name;  // its last part
  OwnedFile owned;
};

OwnedFile owned_file(const fs::path& root, std::string folder, const fs::path& path) {
  const fs::path whole = inside(root, "").value_or(root);
  return {std::move(folder), path.lexically_relative(whole).generic_string()};
}

NamedFile named_file(const Call& call, const ServiceParts& parts, std::string_view filename,
                     const std::string& kind, const std::string& subfolder) {
  const TaggedName named = tagged_name(filename);
  if (named.name.empty() || !is_safe_name(named.name)) refuse(400);
  const std::string& tree = named.folder.empty() ? kind : named.folder;
  const auto root = folder_of(parts.engine, tree);
  if (!root) refuse(400);
  const std::optional<fs::path> folder = inside(*root, subfolder);
  if (!folder) refuse(403);
  const std::string name = fs::path(named.name).filename();
  const std::optional<fs::path> file = inside(*root, *folder / name);
  if (!file) refuse(403);
  NamedFile found{*file, name, owned_file(*root, tree, *file)};
  if (!parts.owners.may_see(call.request.caller, found.owned)) refuse(404);
  return found;
}

std::string converted(const heddle::Engine& engine, const fs::path& file,
                      const heddle::PictureConversion& conversion) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) refuse(404);
  return converted_picture(
      engine, [&] { return read_file(file, kUploadedFile); }, conversion);
}

// "webp;75": the last part is the quality where it is a number.
heddle::PictureConversion preview_of(const std::string& preview, const std::string& channel) {
  heddle::PictureConversion conversion;
  conversion.format = preview.substr(0, preview.find(';'));
  const bool is_known = conversion.format == "webp" || conversion.format == "jpeg";
  if (!is_known || channel.find('a') != std::string::npos) conversion.format = "webp";
  if (channel == "rgb") conversion.channels = heddle::PictureConversion::Channels::rgb;
  const std::string last = preview.substr(preview.rfind(';') + 1);
  int quality = 0;
  const auto read = std::from_chars(last.data(), last.data() + last.size(), quality);
  if (read.ec == std::errc() && read.ptr == last.data() + last.size())
    conversion.quality = std::clamp(quality, 1, 100);
  return conversion;
}

// What `preview` and `channel` ask for; nothing: the file as it is.
std::optional<heddle::PictureConversion> conversion_of(const Query& query) {
  using Channels = heddle::PictureConversion::Channels;
  const std::string preview = query.get("preview"), channel = query.get("channel");
  if (!preview.empty()) return preview_of(preview, channel);
  if (channel != "rgb" && channel != "a") return {};
  heddle::PictureConversion conversion;
  conversion.channels = channel == "rgb" ? Channels::rgb : Channels::alpha;
  return conversion;
}

HttpResponse view(const Call& call, const ServiceParts& parts) {
  // The hash of an asset, of which there are none: never a file of this name.
  if (call.query.get("filename").starts_with("blake3:")) refuse(404);
  const NamedFile file = named_file(call, parts, call.query.get("filename"),
                                    call.query.get("type", "output"), call.query.get("subfolder"));
  if (const auto conversion = conversion_of(call.query)) {
    HttpResponse made{200, {}, converted(parts.engine, file.path, *conversion), {}};
    made.set("Content-Type", cat("image/", conversion->format));
    made.set("Content-Disposition", disposition(file.name, false));
    return std::move(made.set("X-Content-Type-Options", "nosniff"));
  }
  std::optional<HttpResponse> response = file_response(call.request, file.path);
  if (!response) refuse(404);
  const std::string_view type = content_type(file.path);
  const std::string* wanted_as = call.request.header("Sec-Fetch-Dest");
  const bool is_picture = type == "image/svg+xml" && wanted_as != nullptr && *wanted_as == "image";
  const bool is_attachment = is_dangerous(type) && !is_picture;
  response->set("Content-Type", std::string(is_attachment ? "application/octet-stream" : type));
  response->set("Content-Disposition", disposition(file.name, is_attachment));
  response->set("X-Content-Type-Options", "nosniff");
  return *std::move(response);
}

bool has_content(const fs::path& file, std::string_view content) {
  std::error_code error;
  if (fs::file_size(file, error) != content.size() || error) return false;
  return read_file(file, kUploadedFile) == content;
}

// "a (1).png" of "a.png".
fs::path numbered(const fs::path& file, int number) {
  return file.parent_path() /
         cat(file.stem().string(), " (", number, ")", file.extension().string());
}

// The name that it has in the end. What is there already is not written twice.
// `is_ours`: whether a file that is there may be replaced, or stand for the upload.
fs::path save_upload(const fs::path& file, std::string_view content, bool overwrite,
                     const std::function<bool(const fs::path&)>& is_ours) {
  fs::create_directories(file.parent_path());
  std::error_code error;
  if (overwrite) {
    const fs::file_status there = fs::status(file, error);
    if (fs::exists(there) && !is_ours(file)) refuse(403);
    if (fs::exists(there) && !fs::is_regular_file(there)) refuse(400);  // a pipe would wait
    write_file(file, content, Lasting::yes);
    return file;
  }
  for (int i = 0; i < kMostCopies; ++i) {
    const fs::path next = i == 0 ? file : numbered(file, i);
    if (create_file(next, content)) return next;
    if (is_ours(next) && has_content(next, content)) return next;
  }
  refuse(400);
}

std::string text_of(const std::vector<FormPart>& form, std::string_view name) {
  const FormPart* part = find_part(form, name);
  return part == nullptr ? "" : std::string(part->content);
}

// Of a mask: the picture that it belongs to, with the mask's alpha.
std::string masked(const Call& call, const ServiceParts& parts, const std::vector<FormPart>& form,
                   std::string_view mask) {
  const std::string text = text_of(form, "original_ref");
  if (text.empty()) refuse(400);
  NamedFile original;
  try {
    const Json reference = parse_json(text, "original_ref");
    const auto member = [&](const char* name, const char* otherwise) {
      const Json* found = reference.find(name);
      return found == nullptr ? std::string(otherwise) : found->as_string();
    };
    original = named_file(call, parts, member("filename", ""), member("type", "output"),
                          member("subfolder", ""));
  } catch (const Error& error) {
    throw Refused{text_response(error.full(), 400)};
  }
  heddle::PictureConversion conversion;
  conversion.alpha_from = mask;
  return converted(parts.engine, original.path, conversion);
}

enum class Upload { file, mask };

HttpResponse upload(const Call& call, const ServiceParts& parts, Upload what) {
  const std::string* type = call.request.header("Content-Type");
  const auto form = read_form(type == nullptr ? "" : *type, call.request.body);
  if (!form) refuse(400);
  const FormPart* image = find_part(*form, "image");
  if (image == nullptr || !is_safe_name(image->file_name)) refuse(400);
  const std::string kind = text_of(*form, "type").empty() ? "input" : text_of(*form, "type");
  const auto root = folder_of(parts.engine, kind);
  if (!root) refuse(400);
  const std::string subfolder = text_of(*form, "subfolder");
  if (!subfolder.empty() && !is_safe_name(subfolder)) refuse(400);
  const std::optional<fs::path> file = inside(*root, fs::path(subfolder) / image->file_name);
  if (!file || file->filename() == ".") refuse(400);
  std::error_code error;
  if (fs::is_directory(*file, error)) refuse(400);
  const std::string overwrite = text_of(*form, "overwrite");
  const bool replaces = overwrite == "true" || overwrite == "1";
  const Caller& caller = call.request.caller;
  const auto is_ours = [&](const fs::path& path) {
    return parts.owners.may_change(caller, owned_file(*root, kind, path));
  };
  const std::string made =
      what == Upload::mask ? masked(call, parts, *form, image->content) : std::string();
  const std::string_view content = what == Upload::mask ? made : image->content;
  const fs::path saved = save_upload(*file, content, replaces, is_ours);
  parts.owners.add(owned_file(*root, kind, saved), caller.user);
  Json answer = Json::object();
  answer.set("name", saved.filename().string()).set("subfolder", subfolder);
  return json_response(answer.set("type", kind));
}

// Of the first of the folders that has it.
HttpResponse static_file(const Call& call, const std::vector<fs::path>& roots,
                         std::string_view name) {
  for (const fs::path& root : roots) {
    const std::optional<fs::path> file =
        !root.empty() && is_safe_name(name) ? inside(root, name) : std::nullopt;
    std::optional<HttpResponse> response = file ? file_response(call.request, *file) : std::nullopt;
    if (response) return std::move(response->set("Content-Type", std::string(content_type(*file))));
  }
  throw Refused{text_response("404: Not Found", 404)};
}

// Scripts and workflows that packs bring. Those of the front end itself stand under /extensions,
// too.
void add_packs(Router& router, const ServiceParts& parts) {
  const PackFolders packs(parts.options.packs);
  router.add_twice("GET", "/extensions",
                   [packs](const Call&) { return json_response(json_list(packs.scripts())); });
  router.add_twice("GET", "/workflow_templates",
                   [packs](const Call&) { return json_response(packs.templates()); });
  const auto send = [](const Call& call, const std::optional<fs::path>& file) {
    std::optional<HttpResponse> response = file ? file_response(call.request, *file) : std::nullopt;
    if (response) response->set("Content-Type", std::string(content_type(*file)));
    return response;
  };
  router.add_twice("GET", "/extensions/{pack}/{path...}", [packs, parts, send](const Call& call) {
    const std::string &pack = call.part("pack"), &path = call.part("path");
    if (auto response = send(call, packs.script_file(pack, path))) return *std::move(response);
    return static_file(call, {parts.options.front_end.pages}, cat("extensions/", pack, "/", path));
  });
  router.add_twice("GET", "/workflow_templates/{pack}/{file}", [packs, send](const Call& call) {
    auto response = send(call, packs.template_file(call.part("pack"), call.part("file")));
    if (!response) refuse(404);
    return *std::move(response);
  });
}

}  // namespace

void add_file_routes(Router& router, const ServiceParts& parts) {
  router.add_twice("GET", "/view", [parts](const Call& call) { return view(call, parts); });
  router.add_twice("POST", "/upload/image",
                   [parts](const Call& call) { return upload(call, parts, Upload::file); });
  router.add_twice("POST", "/upload/mask",
                   [parts](const Call& call) { return upload(call, parts, Upload::mask); });
  add_packs(router, parts);
  const FrontEnd& front_end = parts.options.front_end;
  if (!front_end.is_served()) return;
  router.add("GET", "/", [&front_end](const Call& call) {
    HttpResponse page = static_file(call, {front_end.pages}, "index.html");
    page.set("Cache-Control", "no-cache").set("Pragma", "no-cache").set("Expires", "0");
    return page;
  });
  router.add_twice("GET", "/templates/{path...}", [&front_end](const Call& call) {
    return static_file(call, front_end.templates, call.part("path"));
  });
  router.add_twice("GET", "/docs/{path...}", [&front_end](const Call& call) {
    return static_file(call, {front_end.docs}, call.part("path"));
  });
  router.add("GET", "/{path...}", [&front_end](const Call& call) {
    return static_file(call, {front_end.pages}, call.part("path"));
  });
}

}  // namespace heddle::engine
