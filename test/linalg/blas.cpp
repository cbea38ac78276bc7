#include <prowl/linalg/blas.hpp>

#include <gtest/gtest.h>

TEST(Blas, placeholder) {}
