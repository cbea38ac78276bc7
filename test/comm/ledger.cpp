#include <prowl/comm/ledger.hpp>

#include <gtest/gtest.h>

using namespace prowl;

// Section 3.3 of arXiv:2608.20818: (p-1)/p of the gathered bytes; twice that for an all-reduce.
TEST(Ledger, counts_the_logical_bytes_of_each_kind) {
  Ledger ledger;
  ledger.record(Collective::all_gather, Purpose::optimizer, 4, 400);
  ledger.record(Collective::all_gather, Purpose::optimizer, 4, 800);
  ledger.record(Collective::all_reduce, Purpose::optimizer, 4, 400);
  ledger.record(Collective::reduce_scatter, Purpose::backward, 2, 100);
  EXPECT_EQ(ledger.totals(Collective::all_gather, Purpose::optimizer).calls, 2);
  EXPECT_EQ(ledger.totals(Collective::all_gather, Purpose::optimizer).bytes, 900);
  EXPECT_EQ(ledger.totals(Collective::all_reduce, Purpose::optimizer).bytes, 600);
  EXPECT_EQ(ledger.totals(Purpose::optimizer).calls, 3);
  EXPECT_EQ(ledger.totals(Purpose::optimizer).bytes, 1500);
  EXPECT_EQ(ledger.totals(Purpose::backward).bytes, 50);
  EXPECT_EQ(ledger.totals(Purpose::forward).calls, 0);
}

TEST(Ledger, one_rank_moves_nothing) {
  EXPECT_EQ(logical_bytes(Collective::all_gather, 1, 1000), 0);
  EXPECT_EQ(logical_bytes(Collective::all_reduce, 1, 1000), 0);
}
