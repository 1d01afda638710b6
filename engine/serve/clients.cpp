#include "engine/serve/clients.h"

#include "engine/base/text.h"
#include "engine/queue/job_queue.h"

namespace heddle::engine {
namespace {

WebSocket::Message text_of(const Json& message) {
  return std::make_shared<const std::string>(write_json(message));
}

void add_number(std::uint32_t number, std::string& bytes) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
}

// Frames 1 and 4 of ComfyUI's server; numbers are big-endian.
WebSocket::Message plain_picture(bool is_jpeg, std::string_view picture) {
  std::string bytes;
  add_number(1, bytes);
  add_number(is_jpeg ? 1 : 2, bytes);
  return std::make_shared<const std::string>(bytes.append(picture));
}
WebSocket::Message picture_with(const Json& about, bool is_jpeg, std::string_view picture) {
  Json whole = about;
  const std::string json =
      write_json(whole.set("image_type", is_jpeg ? "image/jpeg" : "image/png"));
  std::string bytes;
  add_number(4, bytes);
  add_number(static_cast<std::uint32_t>(json.size()), bytes);
  return std::make_shared<const std::string>(bytes.append(json).append(picture));
}

// Frame 3.
WebSocket::Message text_about(std::string_view node, std::string_view text) {
  std::string bytes;
  add_number(3, bytes);
  add_number(static_cast<std::uint32_t>(node.size()), bytes);
  return std::make_shared<const std::string>(bytes.append(node).append(text));
}

std::string made_id() {
  std::string id = make_job_id();
  std::erase(id, '-');
  return id;
}

}  // namespace

WebSocketEvents Clients::connect(std::string id, const std::shared_ptr<WebSocket>& socket) {
  if (id.empty()) id = made_id();
  std::uint64_t number = 0;
  Client before;  // whose end is not ours to hold the lock for
  {
    const std::lock_guard lock(mutex_);
    number = ++last_;
    before = std::exchange(clients_[id], {socket, number});
  }
  for (const Json& message : greeting_.messages(id)) socket->send_text(text_of(message));
  return {[this, id, number](std::string_view text, bool is_text) {
            if (is_text) received(id, number, text);
          },
          [this, id, number] { closed(id, number); }};
}

// Only the first message may say what the client can do; all others mean nothing.
void Clients::received(const std::string& id, std::uint64_t number, std::string_view text) {
  std::shared_ptr<WebSocket> socket;
  {
    const std::lock_guard lock(mutex_);
    const auto found = clients_.find(id);
    if (found == clients_.end() || found->second.number != number) return;
    if (std::exchange(found->second.has_spoken, true)) return;
    try {
      const Json message = parse_json(text, "message");
      const Json* type = message.find("type");
      if (type == nullptr || !type->is_string() || type->as_string() != "feature_flags") return;
      const Json* data = message.find("data");
      const Json* about = data == nullptr ? nullptr : data->find("supports_preview_metadata");
      found->second.wants_about = about != nullptr && about->is_bool() && about->as_bool();
    } catch (const Error&) {
      return;
    }
    socket = found->second.socket;
  }
  Json answer = Json::object();
  socket->send_text(text_of(answer.set("type", "feature_flags").set("data", greeting_.features())));
}

// By now another connection may have the id.
void Clients::closed(const std::string& id, std::uint64_t number) {
  std::shared_ptr<WebSocket> gone;
  const std::lock_guard lock(mutex_);
  const auto found = clients_.find(id);
  if (found == clients_.end() || found->second.number != number) return;
  gone = std::move(found->second.socket);
  clients_.erase(found);
}

void Clients::send(const std::string& client, const Json& message) {
  const std::lock_guard lock(mutex_);
  const auto found = clients_.find(client);
  if (found != clients_.end()) found->second.socket->send_text(text_of(message));
}

void Clients::send_to_all(const Json& message) {
  const WebSocket::Message text = text_of(message);
  const std::lock_guard lock(mutex_);
  for (const auto& [id, client] : clients_) client.socket->send_text(text);
}

void Clients::send_picture(const std::string& client, const Json& about, bool is_jpeg,
                           std::string_view picture) {
  const std::lock_guard lock(mutex_);
  if (client.empty()) {
    const WebSocket::Message message = plain_picture(is_jpeg, picture);
    for (const auto& [id, to] : clients_) to.socket->send_binary(message, true);
    return;
  }
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  found->second.socket->send_binary(found->second.wants_about
                                        ? picture_with(about, is_jpeg, picture)
                                        : plain_picture(is_jpeg, picture),
                                    true);
}

void Clients::send_text_of(const std::string& client, std::string_view node,
                           std::string_view text) {
  const WebSocket::Message message = text_about(node, text);
  const std::lock_guard lock(mutex_);
  for (const auto& [id, to] : clients_)
    if (client.empty() || id == client) to.socket->send_binary(message, true);
}

void Clients::forget_all() {
  std::map<std::string, Client> gone;
  const std::lock_guard lock(mutex_);
  gone.swap(clients_);
}

std::size_t Clients::count() const {
  const std::lock_guard lock(mutex_);
  return clients_.size();
}

}  // namespace heddle::engine
