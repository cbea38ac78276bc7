/// What a program holds beside its arrays.
#pragma once

#include <cstdint>

namespace prowl {

/// Resident bytes of this process once its libraries have been used: a product by BLAS, an array file written and read
/// back in the folder for temporary files. Before, they are a third less: code and tables are loaded at first use.
/// After MPI and Kokkos were started, before arrays are allocated.
std::int64_t program_bytes();

} // namespace prowl
