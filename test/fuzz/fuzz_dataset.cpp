// A data set in which anything may be anything: refused, or all of it can be read.
#include "scratch.hpp"

#include <prowl/io/dataset.hpp>
#include <prowl/io/hdf5_attributes.hpp>

#include <cmath>

namespace {

void make(fuzz::Bytes& bytes, std::string const& path) {
  prowl::hdf5::Lock const lock;
  prowl::hdf5::Handle const file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), path);
  hid_t const root = file.get();
  if (bytes.ConsumeIntegralInRange(0, 15))
    prowl::hdf5::write_attribute(root, "format", "prowl data set", path);
  else
    fuzz::any_attribute(bytes, root, "format");
  if (bytes.ConsumeIntegralInRange(0, 15))
    prowl::hdf5::write_attribute(root, "version", 1, path);
  else
    fuzz::any_attribute(bytes, root, "version");
  if (bytes.ConsumeIntegralInRange(0, 7))
    prowl::hdf5::write_attribute(root, "training_count", 1, path);
  else
    fuzz::any_attribute(bytes, root, "training_count");
  if (bytes.ConsumeBool()) fuzz::any_attribute(bytes, root, "source");
  fuzz::any_object(bytes, root, bytes.ConsumeBool() ? "latents" : "images");
  fuzz::any_object(bytes, root, "captions");
  fuzz::any_object(bytes, root, "pooled");
  prowl::hdf5::Handle const text(H5Gcreate2(root, "text", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), path);
  prowl::hdf5::Handle const encoder(H5Gcreate2(text.get(), "t", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), path);
  fuzz::any_object(bytes, encoder.get(), "features");
  if (!bytes.ConsumeIntegralInRange(0, 7)) fuzz::any_object(bytes, text.get(), "u");
}

void read(std::string const& path) {
  prowl::Dataset const data(path);
  std::vector<float> samples(std::size_t(data.sample_size())), pooled(std::size_t(data.pooled_width()));
  for (std::int64_t i = 0; i < data.size(); ++i) {
    data.caption(i);
    data.read_samples(i, 1, samples.data());
    data.read_pooled(i, 1, pooled.data());
    for (std::size_t e = 0; e < data.encoders().size(); ++e) {
      auto const& encoder = data.encoders()[e];
      std::vector<float> text(std::size_t(encoder.tokens * encoder.width));
      data.read_text(std::int64_t(e), i, 1, text.data());
    }
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::Bytes bytes(data, size);
  auto const path = fuzz::scratch("x.h5");
  make(bytes, path);
  fuzz::expect_error_or_none([&] { read(path); });
  return 0;
}
