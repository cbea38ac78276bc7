/// A collective under way.
#pragma once

#include <memory>
#include <vector>

namespace prowl {

namespace detail {
struct PendingCollective;
}

/// Keeps the collective's buffers alive until it is complete. To drop one that was not waited for is an error
/// of the program: it is reported and ends the process, since other ranks would otherwise wait for ever.
class [[nodiscard]] Request {
public:
  /// Complete.
  Request() = default;
  explicit Request(std::shared_ptr<detail::PendingCollective> pending);
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  ~Request();

  /// Returns when the result is in the caller's buffer. Throws Error where the communication failed.
  void wait();
  bool pending() const { return pending_ != nullptr; }

private:
  std::shared_ptr<detail::PendingCollective> pending_;
};

/// Waits for all, and forgets them.
void wait_all(std::vector<Request>& requests);

} // namespace prowl
