#include <prowl/io/hdf5.hpp>

namespace prowl::hdf5 {

namespace {

std::recursive_mutex mutex;

herr_t close_id(hid_t id) {
  switch (H5Iget_type(id)) {
  case H5I_FILE:
    return H5Fclose(id);
  case H5I_GROUP:
    return H5Gclose(id);
  case H5I_DATASET:
    return H5Dclose(id);
  case H5I_DATASPACE:
    return H5Sclose(id);
  case H5I_DATATYPE:
    return H5Tclose(id);
  case H5I_ATTR:
    return H5Aclose(id);
  case H5I_GENPROP_LST:
    return H5Pclose(id);
  default:
    return H5Idec_ref(id);
  }
}

herr_t innermost(unsigned, H5E_error2_t const* error, void* message) {
  if (error->desc) *static_cast<std::string*>(message) = error->desc;
  return 0;
}

} // namespace

Lock::Lock() : lock_(mutex) { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

void fail(std::string const& context) {
  std::string message = "HDF5 error";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, innermost, &message);
  H5Eclear2(H5E_DEFAULT);
  throw Error("{}: {}", context, message);
}

Handle::~Handle() {
  if (id_ < 0) return;
  Lock const lock;
  close_id(id_);
}

void Handle::close(std::string const& context) {
  Lock const lock;
  check(close_id(std::exchange(id_, H5I_INVALID_HID)), context);
}

} // namespace prowl::hdf5
