// The newer of two checkpoints is made of the fuzzer's bytes, or of any HDF5 objects under a seal that fits. It is read
// whole or refused, and where it is damaged the older one is chosen.
#include "scratch.hpp"

#include <prowl/io/checkpoint.hpp>
#include <prowl/io/detail/seal.hpp>

#include <filesystem>

namespace {

std::string folder, older, newer;

void write_seed(std::string const& seeds) {
  float const weights[6] = {1, 2, 3, 4, 5, 6};
  prowl::ArrayFileContents contents;
  contents.arrays = {{"weights/x", {2, 3}, 0, 2, weights}};
  contents.attributes = {{"model", "tiny"}};
  contents.texts = {{"deck", "[run]\n"}};
  older = prowl::write_checkpoint(MPI_COMM_WORLD, folder, 1, contents, 0);
  if (seeds.empty()) return;
  std::ifstream file(older, std::ios::binary);
  std::ofstream(seeds + "/written", std::ios::binary) << '\0' << file.rdbuf();
}

void make_sealed(fuzz::Bytes& bytes) {
  {
    prowl::hdf5::Lock const lock;
    prowl::hdf5::Handle const plan(H5Pcreate(H5P_FILE_CREATE), newer);
    H5Pset_userblock(plan.get(), 512);
    prowl::hdf5::Handle const file(H5Fcreate(newer.c_str(), H5F_ACC_TRUNC, plan.get(), H5P_DEFAULT), newer);
    prowl::hdf5::Handle const space(H5Screate(H5S_SCALAR), newer);
    for (auto const& [name, value] : {std::pair{"format", 2}, {"step", 2}}) {
      prowl::hdf5::Handle const a(
          H5Acreate2(file.get(), name, H5T_STD_I64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT), newer);
      H5Awrite(a.get(), H5T_NATIVE_INT, &value);
    }
    if (bytes.ConsumeBool()) fuzz::any_attribute(bytes, file.get(), "model");
    prowl::hdf5::Handle const group(H5Gcreate2(file.get(), "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                                    newer);
    for (char const* name : {"pooled", "a", "b"})
      fuzz::any_object(bytes, bytes.ConsumeBool() ? file.get() : group.get(), name);
  }
  prowl::detail::Seal seal{2, 0, 0, ""};
  {
    prowl::detail::InputFile const input(newer);
    seal.bytes = input.bytes();
    seal.checksum = prowl::detail::checksum_of_share(input, 0, 1).value();
  }
  std::fstream(newer, std::ios::in | std::ios::out | std::ios::binary) << prowl::detail::to_block(seal);
}

void read_newer() {
  prowl::ArrayFileReader const reader(MPI_COMM_WORLD, newer);
  for (auto const& a : reader.arrays()) {
    if (a.type != prowl::ElementType::float32) continue;
    std::int64_t elements = 1;
    for (auto const extent : a.shape) elements *= extent;
    std::vector<float> values(static_cast<std::size_t>(elements));
    reader.read({a.name, a.shape, 0, a.shape[0], values.data()});
  }
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  setenv("OMPI_MCA_io", "^ompio", 0);
  MPI_Init(argc, argv);
  folder = fuzz::scratch("run");
  std::filesystem::create_directory(folder);
  newer = prowl::checkpoint_path(folder, 2);
  char const* const seeds = std::getenv("PROWL_FUZZ_SEEDS");
  write_seed(seeds ? seeds : "");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::Bytes bytes(data, size);
  bool const raw = !bytes.ConsumeBool();
  if (raw)
    fuzz::write(newer, data + (size > 0), size - (size > 0));
  else
    make_sealed(bytes);
  fuzz::expect_error_or_none(read_newer);
  fuzz::expect_error_or_none([&] {
    auto const chosen = prowl::newest_intact_checkpoint(MPI_COMM_WORLD, folder, [](auto const&) {});
    if (chosen != older && chosen != newer) std::abort();
  });
  return 0;
}
