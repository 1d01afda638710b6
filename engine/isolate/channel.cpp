#include "engine/isolate/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

namespace {

struct Header {
  std::uint32_t kind = 0, has_descriptor = 0;
  std::uint64_t bytes = 0;
};
constexpr std::size_t kReadBytes = 64 << 10, kMostReadBytes = 1 << 20;

}  // namespace

void Channel::while_waiting(std::function<void()> call) {
  while_waiting_ = std::move(call);
  const timeval tick{0, 20'000};
  for (const int direction : {SO_RCVTIMEO, SO_SNDTIMEO})
    ::setsockopt(socket(), SOL_SOCKET, direction, &tick, sizeof tick);
}

void Channel::shut_down() { ::shutdown(socket(), SHUT_RDWR); }

void Channel::write(const char* data, std::size_t bytes, int descriptor) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  while (bytes > 0) {
    iovec part{const_cast<char*>(data), bytes};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* const head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    }
    const ssize_t sent = ::sendmsg(socket(), &message, MSG_NOSIGNAL);
    if (sent > 0) {
      data += sent;
      bytes -= std::size_t(sent);
      descriptor = -1;  // it went with the first byte
      if (bytes > 0) waited();
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      waited();
    } else if (errno == EPIPE || errno == ECONNRESET) {
      throw ChannelClosed();
    } else if (errno != EINTR) {
      throw system_error("the socket of a worker", errno);
    }
  }
}

void Channel::send(std::uint32_t kind, std::string_view body, int descriptor) {
  if (body.size() > kMostMessageBytes)
    throw Error(Code::unsupported,
                cat("a message of ", body.size(), " bytes is too large for a worker; at most ",
                    kMostMessageBytes, " bytes of texts and numbers cross at once"));
  const Header header{kind, descriptor >= 0 ? 1u : 0u, body.size()};
  const MutexLock lock(sending_);
  if (body.size() <= kReadBytes) {  // one call of the system
    char whole[sizeof header + kReadBytes];
    std::memcpy(whole, &header, sizeof header);
    if (!body.empty()) std::memcpy(whole + sizeof header, body.data(), body.size());
    return write(whole, sizeof header + body.size(), descriptor);
  }
  write(reinterpret_cast<const char*>(&header), sizeof header, descriptor);
  write(body.data(), body.size(), -1);
}

void Channel::fill(std::size_t bytes) {
  while (buffer_.size() - begin_ < bytes) {
    // What has been taken makes room before more comes, and no more room than one read needs.
    if (begin_ == buffer_.size() || begin_ >= kReadBytes) {
      buffer_.erase(0, begin_);
      begin_ = 0;
    }
    const std::size_t have = buffer_.size();
    const std::size_t missing = bytes - (have - begin_);
    buffer_.resize(have + std::clamp(missing, kReadBytes, kMostReadBytes));
    iovec part{buffer_.data() + have, buffer_.size() - have};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (takes_descriptors_) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
    }
    const ssize_t got = ::recvmsg(socket(), &message, MSG_CMSG_CLOEXEC);
    const int error = errno;
    buffer_.resize(have + std::size_t(std::max<ssize_t>(got, 0)));
    if (got > 0) {
      for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
           head = CMSG_NXTHDR(&message, head))
        if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
          int descriptor = -1;
          std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
          descriptors_.emplace_back(descriptor);
        }
      if (buffer_.size() - begin_ < bytes) waited();  // whoever sends bit by bit is late as well
    } else if (got == 0 || error == ECONNRESET) {
      throw ChannelClosed();
    } else if (error == EAGAIN || error == EWOULDBLOCK) {
      waited();
    } else if (error != EINTR) {
      throw system_error("the socket of a worker", error);
    }
  }
}

Message Channel::receive() {
  Header header;
  fill(sizeof header);
  std::memcpy(&header, buffer_.data() + begin_, sizeof header);
  begin_ += sizeof header;
  if (header.bytes > kMostMessageBytes)
    throw Error(Code::internal, cat("a worker sends a message of ", header.bytes,
                                    " bytes; it may have ", kMostMessageBytes));
  fill(header.bytes);
  Message message{header.kind, buffer_.substr(begin_, header.bytes), -1};
  begin_ += header.bytes;
  if (begin_ == buffer_.size() && buffer_.capacity() > kMostReadBytes) {
    buffer_ = {};  // a long one does not keep its room
    begin_ = 0;
  }
  if (header.has_descriptor != 0 && !descriptors_.empty()) {
    message.descriptor = descriptors_.front().release();
    descriptors_.pop_front();
  }
  return message;
}

int above_standard(int descriptor) {
  if (descriptor < 0 || descriptor > 2) return descriptor;
  const int above = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 3), failure = errno;
  ::close(descriptor);
  errno = failure;
  return above;
}

std::pair<int, int> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw system_error("sockets for a worker", errno);
  FileDescriptor first(above_standard(ends[0])), second(above_standard(ends[1]));
  if (first.number() < 0 || second.number() < 0) throw system_error("sockets for a worker", errno);
  return {first.release(), second.release()};
}

}  // namespace heddle::engine
