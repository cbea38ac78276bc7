/// HDF5 with ownership and errors: handles that close themselves, and the one place that checks return codes.
///
/// The HDF5 library need not be thread-safe: every use of it holds `hdf5::Lock`.
#pragma once

#include <prowl/core/error.hpp>

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

namespace prowl::hdf5 {

/// Held around every use of HDF5; recursive. Also silences the library's own error printing: errors are
/// thrown.
class Lock {
public:
  Lock();

private:
  std::unique_lock<std::recursive_mutex> lock_;
};

/// Throws Error("<context>: <HDF5's innermost message>") where an HDF5 function returned a negative value.
template <class Result>
Result check(Result result, std::string const& context);

[[noreturn]] void fail(std::string const& context);

template <class Result>
Result check(Result result, std::string const& context) {
  if (result < 0) fail(context);
  return result;
}

/// An HDF5 identifier of any kind that closes itself.
class Handle {
public:
  Handle() = default;
  /// Takes ownership of `id`; throws Error with `context` where it is negative.
  Handle(hid_t id, std::string const& context) : id_(check(id, context)) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle();

  hid_t get() const { return id_; }
  /// Closes now and throws where closing fails: for files, whose buffers are written then.
  void close(std::string const& context);

private:
  hid_t id_ = H5I_INVALID_HID;
};

} // namespace prowl::hdf5
