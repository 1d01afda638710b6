#include "engine/serve/clients.h"

#include <set>

#include "engine/base/text.h"
#include "engine/queue/job_queue.h"

namespace heddle::engine {
namespace {

WebSocket::Message text_of(const Json& message) {
  return std::make_shared<const SocketMessage>(write_json(message));
}

void add_number(std::uint32_t number, std::string& bytes) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
}

// Frames 1 and 4 of ComfyUI's server; numbers are big-endian.
WebSocket::Message plain_picture(const SentPicture& picture) {
  std::string bytes;
  add_number(1, bytes);
  add_number(picture.is_jpeg ? 1 : 2, bytes);
  return std::make_shared<const SocketMessage>(bytes.append(picture.bytes));
}
WebSocket::Message picture_with(const Json& about, const SentPicture& picture) {
  Json whole = about;
  const std::string json =
      write_json(whole.set("image_type", picture.is_jpeg ? "image/jpeg" : "image/png"));
  std::string bytes;
  add_number(4, bytes);
  add_number(static_cast<std::uint32_t>(json.size()), bytes);
  return std::make_shared<const SocketMessage>(bytes.append(json).append(picture.bytes));
}

// Frame 3.
WebSocket::Message text_about(std::string_view node, std::string_view text) {
  std::string bytes;
  add_number(3, bytes);
  add_number(static_cast<std::uint32_t>(node.size()), bytes);
  return std::make_shared<const SocketMessage>(bytes.append(node).append(text));
}

std::string made_id() {
  std::string id = make_job_id();
  std::erase(id, '-');
  return id;
}

}  // namespace

template <class F>
void Clients::each(const Audience& to, F call) const {
  auto at = to.client.empty() ? clients_.begin() : clients_.lower_bound({to.client, ""});
  for (; at != clients_.end() && (to.client.empty() || at->first.first == to.client); ++at)
    if (at->second.caller.may_see(to.user)) call(at->second);
}

WebSocketEvents Clients::connect(std::string id, const Caller& caller,
                                 const std::shared_ptr<WebSocket>& socket) {
  const Name name{id.empty() ? made_id() : std::move(id), caller.user};
  std::uint64_t number = 0;
  Client before;  // whose end is not ours to hold the lock for
  {
    const std::lock_guard lock(mutex_);
    number = ++last_;
    before = std::exchange(clients_[name], {socket, caller, number});
  }
  try {
    for (const Json& message : greeting_.messages(name.first, caller))
      socket->send_text(text_of(message));
  } catch (...) {  // the queue cannot be read, perhaps
    closed(name, number);
    throw;
  }
  return {[this, name, number](std::string_view text, bool is_text) {
            if (is_text) received(name, number, text);
          },
          [this, name, number] { closed(name, number); }};
}

// Only the first message may say what the client can do; all others mean nothing.
void Clients::received(const Name& name, std::uint64_t number, std::string_view text) {
  std::shared_ptr<WebSocket> socket;
  {
    const std::lock_guard lock(mutex_);
    const auto found = clients_.find(name);
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
void Clients::closed(const Name& name, std::uint64_t number) {
  std::shared_ptr<WebSocket> gone;
  const std::lock_guard lock(mutex_);
  const auto found = clients_.find(name);
  if (found == clients_.end() || found->second.number != number) return;
  gone = std::move(found->second.socket);
  clients_.erase(found);
}

void Clients::send(const Audience& to, const Json& message) {
  const WebSocket::Message text = text_of(message);
  const std::lock_guard lock(mutex_);
  each(to, [&](const Client& client) { client.socket->send_text(text); });
}

void Clients::send_to_all(const Json& message) {
  const WebSocket::Message text = text_of(message);
  const std::lock_guard lock(mutex_);
  for (const auto& [name, client] : clients_) client.socket->send_text(text);
}

void Clients::send_picture(const Audience& to, const Json& about, const SentPicture& picture) {
  const std::lock_guard lock(mutex_);
  WebSocket::Message plain, with_more;  // made when the first one wants it
  each(to, [&](const Client& client) {
    const bool wants_more = client.wants_about && !to.client.empty();
    WebSocket::Message& message = wants_more ? with_more : plain;
    if (message == nullptr)
      message = wants_more ? picture_with(about, picture) : plain_picture(picture);
    client.socket->send_binary(message, picture.may_drop);
  });
}

void Clients::send_text_of(const Audience& to, std::string_view node, std::string_view text) {
  const WebSocket::Message message = text_about(node, text);
  const std::lock_guard lock(mutex_);
  each(to, [&](const Client& client) { client.socket->send_binary(message, true); });
}

void Clients::close_all(const std::function<bool(const Caller&)>& is_gone) {
  std::vector<Client> asked;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, client] : clients_) asked.push_back(client);
  }
  std::set<std::uint64_t> gone;  // asked without the lock: what that logs is sent to clients
  for (const Client& client : asked)
    if (is_gone(client.caller)) gone.insert(client.number);
  if (gone.empty()) return;
  std::vector<std::shared_ptr<WebSocket>> closed;  // whose ends are not ours to hold the lock for
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(clients_, [&](const auto& one) {
      if (!gone.contains(one.second.number)) return false;
      closed.push_back(one.second.socket);
      return true;
    });
  }
  for (const std::shared_ptr<WebSocket>& socket : closed) socket->close();
}

void Clients::forget_all() {
  std::map<Name, Client> gone;
  const std::lock_guard lock(mutex_);
  gone.swap(clients_);
}

std::size_t Clients::count() const {
  const std::lock_guard lock(mutex_);
  return clients_.size();
}

}  // namespace heddle::engine
