// Files that are intact by their seal, but were made to do harm, or by mistake.
#include "fixture.hpp"

#include <prowl/io/detail/seal.hpp>
#include <prowl/io/hdf5.hpp>

using namespace checkpoint_test;

namespace {

using hdf5::Handle;

void put_integer(hid_t object, char const* name, std::int64_t value) {
  Handle const space(H5Screate(H5S_SCALAR), name);
  Handle const a(H5Acreate2(object, name, H5T_STD_I64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT), name);
  hdf5::check(H5Awrite(a.get(), H5T_NATIVE_INT64, &value), name);
}

Handle put_dataset(hid_t file, hid_t type, std::vector<hsize_t> const& shape, hid_t plan = H5P_DEFAULT,
                   char const* name = "x") {
  Handle const space(H5Screate_simple(int(shape.size()), shape.data(), nullptr), name);
  return Handle(H5Dcreate2(file, name, type, space.get(), H5P_DEFAULT, plan, H5P_DEFAULT), name);
}

Handle plan_of_dataset() { return Handle(H5Pcreate(H5P_DATASET_CREATE), "plan"); }

/// A file of Prowl's form with what `work` puts in, under a seal that fits.
void write_sealed(std::string const& path, std::function<void(hid_t)> const& work) {
  hdf5::Lock const lock;
  {
    Handle const plan(H5Pcreate(H5P_FILE_CREATE), path);
    hdf5::check(H5Pset_userblock(plan.get(), 512), path);
    Handle const file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, plan.get(), H5P_DEFAULT), path);
    put_integer(file.get(), "format", 2);
    work(file.get());
  }
  detail::Seal seal{2, 0, 0, ""};
  {
    detail::InputFile const input(path);
    seal.bytes = input.bytes();
    seal.checksum = detail::checksum_of_share(input, 0, 1).value();
  }
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << detail::to_block(seal);
}

struct Case {
  char const* what;
  char const* expected; ///< in the message
  std::function<void(hid_t)> make;
};

Handle string_of(std::size_t size) {
  Handle type(H5Tcopy(H5T_C_S1), "type");
  hdf5::check(H5Tset_size(type.get(), size), "type");
  return type;
}

std::vector<Case> const cases = {
    {"strings as an array", "dataset x: not one value",
     [](hid_t f) {
       auto const d = put_dataset(f, string_of(8).get(), {100000});
       std::vector<char> const text(800000, 'a');
       H5Dwrite(d.get(), string_of(8).get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data());
     }},
    {"a string of variable length", "dataset x: not a string of fixed length",
     [](hid_t f) {
       Handle const space(H5Screate(H5S_SCALAR), "space"), type = string_of(H5T_VARIABLE);
       Handle const d(H5Dcreate2(f, "x", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                      "x");
       char const* const text = "hello";
       H5Dwrite(d.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &text);
     }},
    {"a string without an end", "dataset x: was never written",
     [](hid_t f) {
       Handle const space(H5Screate(H5S_SCALAR), "space"), type = string_of(std::size_t{1} << 31);
       Handle const d(H5Dcreate2(f, "x", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                      "x");
     }},
    {"an extent of 2^40", "dataset x: was never written",
     [](hid_t f) { put_dataset(f, H5T_IEEE_F32LE, {hsize_t{1} << 40}); }},
    {"an extent of 2^60", "dataset x: was never written",
     [](hid_t f) { put_dataset(f, H5T_IEEE_F32LE, {hsize_t{1} << 60}); }},
    {"4 x 2^31 x 2^31", "dataset x: 4 x 2147483648 x 2147483648 elements are more than a file can hold",
     [](hid_t f) {
       auto const plan = plan_of_dataset();
       hsize_t const chunk[] = {1, 1, 1};
       H5Pset_chunk(plan.get(), 3, chunk);
       put_dataset(f, H5T_IEEE_F32LE, {4, hsize_t{1} << 31, hsize_t{1} << 31}, plan.get());
     }},
    {"2^50 in chunks", "dataset x: says that it has 4503599627370496 bytes",
     [](hid_t f) {
       auto const plan = plan_of_dataset();
       hsize_t const chunk = 1024;
       H5Pset_chunk(plan.get(), 1, &chunk);
       put_dataset(f, H5T_IEEE_F32LE, {hsize_t{1} << 50}, plan.get());
     }},
    {"a chunk that is not there", "dataset x: was not written whole: it has 1 of 3 chunks",
     [](hid_t f) {
       auto const plan = plan_of_dataset();
       hsize_t const chunk = 10, start = 0, count = 10;
       H5Pset_chunk(plan.get(), 1, &chunk);
       auto const d = put_dataset(f, H5T_IEEE_F32LE, {30}, plan.get());
       Handle const space(H5Dget_space(d.get()), "x"), memory(H5Screate_simple(1, &count, nullptr), "x");
       H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start, nullptr, &count, nullptr);
       float const values[10] = {};
       H5Dwrite(d.get(), H5T_NATIVE_FLOAT, memory.get(), space.get(), H5P_DEFAULT, values);
     }},
    {"no element", "dataset x: without elements",
     [](hid_t f) {
       put_dataset(f, H5T_IEEE_F32LE, {3, 0});
     }},
    {"external storage", "dataset x: has external storage",
     [](hid_t f) {
       auto const plan = plan_of_dataset();
       H5Pset_external(plan.get(), "external.bin", 0, 64);
       put_dataset(f, H5T_IEEE_F32LE, {16}, plan.get());
     }},
    {"a virtual dataset", "dataset x: is virtual",
     [](hid_t f) {
       auto const plan = plan_of_dataset();
       hsize_t const size = 16;
       Handle const space(H5Screate_simple(1, &size, nullptr), "space");
       H5Pset_virtual(plan.get(), space.get(), "other.h5", "/y", space.get());
       put_dataset(f, H5T_IEEE_F32LE, {size}, plan.get());
     }},
    {"a soft link", "dataset x: is a soft or an external link",
     [](hid_t f) { H5Lcreate_soft("/y", f, "x", H5P_DEFAULT, H5P_DEFAULT); }},
    {"an external link", "dataset x: is a soft or an external link",
     [](hid_t f) { H5Lcreate_external("/tmp/other.h5", "/y", f, "x", H5P_DEFAULT, H5P_DEFAULT); }},
    {"groups in each other", "groups lie in each other",
     [](hid_t f) {
       Handle const g(H5Gcreate2(f, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "g");
       H5Lcreate_hard(f, "/", g.get(), "again", H5P_DEFAULT, H5P_DEFAULT);
       H5Lcreate_hard(f, "/", g.get(), "and again", H5P_DEFAULT, H5P_DEFAULT);
     }},
    {"a compound type", "dataset x: not of float32, float64 or int64",
     [](hid_t f) {
       Handle const type(H5Tcreate(H5T_COMPOUND, 8), "type");
       H5Tinsert(type.get(), "a", 0, H5T_IEEE_F32LE);
       H5Tinsert(type.get(), "b", 4, H5T_IEEE_F32LE);
       auto const d = put_dataset(f, type.get(), {2});
       float const values[4] = {};
       H5Dwrite(d.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
     }},
    {"a named type", "dataset x: neither a dataset nor a group",
     [](hid_t f) {
       Handle const type(H5Tcopy(H5T_IEEE_F32LE), "type");
       H5Tcommit2(f, "x", type.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
     }},
    {"an attribute of many numbers", "attribute y: not one value",
     [](hid_t f) {
       hsize_t const size = 1000;
       Handle const space(H5Screate_simple(1, &size, nullptr), "y");
       Handle(H5Acreate2(f, "y", H5T_STD_I64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT), "y");
     }},
    {"an attribute that is no integer", "attribute y: neither an integer nor a string",
     [](hid_t f) {
       Handle const space(H5Screate(H5S_SCALAR), "y");
       Handle(H5Acreate2(f, "y", H5T_IEEE_F64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT), "y");
     }},
    {"a checksum of another type", "dataset x: checksum: not an integer",
     [](hid_t f) {
       auto const d = put_dataset(f, H5T_IEEE_F32LE, {2});
       float const values[2] = {};
       H5Dwrite(d.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
       Handle const space(H5Screate(H5S_SCALAR), "y"), type = string_of(30000);
       Handle(H5Acreate2(d.get(), "checksum", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), "y");
     }},
};

} // namespace

TEST_F(Checkpoint, that_is_hostile_is_refused_and_opens_no_other_file) {
  std::string const path = folder + "/x.h5";
  alone([&] { write_sealed(path, [](hid_t) {}); });
  EXPECT_EQ(error_of([&] { ArrayFileReader(MPI_COMM_WORLD, path); }), "");
  for (auto const& c : cases) {
    alone([&] { write_sealed(path, c.make); });
    auto const message = error_of([&] { ArrayFileReader(MPI_COMM_WORLD, path); });
    EXPECT_TRUE(message.starts_with(path) && message.find(c.expected) != std::string::npos)
        << c.what << ": " << message;
  }
}
