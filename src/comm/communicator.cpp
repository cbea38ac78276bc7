#include <prowl/comm/communicator.hpp>

#include <prowl/comm/detail/progress.hpp>
#include <prowl/core/error.hpp>
#include <prowl/core/index.hpp>
#include <prowl/core/square_sum.hpp>
#include <prowl/core/trace.hpp>

#include <limits>
#include <mutex>

namespace prowl {

namespace {

template <class T>
MPI_Datatype mpi_type() {
  if constexpr (std::is_same_v<T, float>)
    return MPI_FLOAT;
  else if constexpr (std::is_same_v<T, double>)
    return MPI_DOUBLE;
  else
    return MPI_UINT16_T;
}

int count(std::size_t n) {
  if (n > std::size_t(std::numeric_limits<int>::max()))
    throw Error("a collective of {} elements a rank: at most 2^31 - 1; use smaller buckets or units", n);
  return int(n);
}

template <class T>
using HostVector = Kokkos::View<T*, Kokkos::LayoutRight, HostMemory>;

/// The vector where MPI can read and write it: itself, or a host copy. One that MPI only writes need not be
/// filled.
template <class T>
HostVector<T> reachable(Vector<T> const& v, bool filled) {
  if constexpr (host_accessible) {
    (void)filled;
    return HostVector<T>(v.data(), v.size());
  } else {
    HostVector<T> copy(Kokkos::view_alloc("prowl::staging", Kokkos::WithoutInitializing), v.size());
    if (filled) Kokkos::deep_copy(copy, v);
    return copy;
  }
}

template <class T>
void bring_back([[maybe_unused]] HostVector<T> const& host, [[maybe_unused]] Vector<T> const& v) {
  if constexpr (!host_accessible) Kokkos::deep_copy(v, host);
}

/// MPI's operation for stored sums of squares; made at the first use, while mpi_mutex is held.
MPI_Op square_sum_operation() {
  static MPI_Op const operation = [] {
    MPI_Op made = MPI_OP_NULL;
    detail::check_mpi(MPI_Op_create(
                          [](void* from, void* into, int* count, MPI_Datatype*) {
                            auto const* const a = static_cast<float const*>(from);
                            auto* const b = static_cast<float*>(into);
                            for (int i = 0; i < *count; ++i) b[i] = add_square_sums(a[i], b[i]);
                          },
                          1, &made),
                      "MPI_Op_create");
    return made;
  }();
  return operation;
}

struct Call {
  Collective kind;
  Purpose purpose;
  int ranks;
  std::int64_t payload;
};

/// Starts a collective, counts it, and hands it to the progress thread; `finish` holds its buffers.
template <class Start>
Request start(Ledger* ledger, Call const& call, Start const& begin, std::function<void()> finish) {
  auto pending = std::make_shared<detail::PendingCollective>();
  pending->label =
      fmt::format("{} {} {:.1f} KiB", name(call.purpose), name(call.kind), double(call.payload) / 1024);
  pending->begin = trace::now();
  pending->finish = std::move(finish);
  int code = MPI_SUCCESS;
  {
    std::lock_guard const lock(detail::mpi_mutex());
    code = begin(&pending->request);
  }
  detail::check_mpi(code, name(call.kind));
  if (ledger) ledger->record(call.kind, call.purpose, call.ranks, call.payload);
  detail::progress(pending);
  return Request(std::move(pending));
}

} // namespace

Communicator::Communicator(MPI_Comm comm, Ledger* ledger)
    : comm_(new MPI_Comm(MPI_COMM_NULL),
            [](MPI_Comm* c) {
              int finalized = 0;
              MPI_Finalized(&finalized);
              if (*c != MPI_COMM_NULL && !finalized) MPI_Comm_free(c);
              delete c;
            }),
      ledger_(ledger) {
  if (comm == MPI_COMM_NULL) throw Error("a communicator of MPI_COMM_NULL, expected a group of ranks");
  int level = 0;
  detail::check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  if (level < MPI_THREAD_MULTIPLE)
    throw Error("MPI was started with {}, expected MPI_THREAD_MULTIPLE: collectives progress in a thread of "
                "their own (MPI_Init_thread, or prowl::run)",
                level == MPI_THREAD_SINGLE     ? "MPI_THREAD_SINGLE"
                : level == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED"
                                               : "MPI_THREAD_SERIALIZED");
  detail::check_mpi(MPI_Comm_dup(comm, comm_.get()), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(*comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(*comm_, &rank_);
  MPI_Comm_size(*comm_, &size_);
}

MPI_Comm Communicator::mpi() const { return *comm_; }

Communicator Communicator::split(int colour, int key) const {
  require_between("colour of a group", colour, 0, std::numeric_limits<int>::max());
  MPI_Comm part = MPI_COMM_NULL;
  detail::check_mpi(MPI_Comm_split(*comm_, colour, key, &part), "MPI_Comm_split");
  Communicator result(part, ledger_);
  MPI_Comm_free(&part);
  return result;
}

template <class T>
Request Communicator::all_gather(Execution const& exec, Vector<T> const& sent, Vector<T> const& received,
                                 Purpose purpose) const {
  if (received.size() != sent.size() * size_)
    throw Error("all_gather: {} elements from each of {} ranks into {}", sent.size(), size_, received.size());
  int const n = count(sent.size());
  exec.fence(); // the kernels that fill `sent`
  auto const from = reachable(sent, true), to = reachable(received, false);
  return start(
      ledger_, {Collective::all_gather, purpose, size_, std::int64_t(received.size() * sizeof(T))},
      [&](MPI_Request* r) {
        return MPI_Iallgather(from.data(), n, mpi_type<T>(), to.data(), n, mpi_type<T>(), *comm_, r);
      },
      [sent, received, from, to, comm = comm_] { bring_back(to, received); });
}

template <class T>
Request Communicator::reduce_scatter(Execution const& exec, Vector<T> const& sent, Vector<T> const& received,
                                     Purpose purpose) const {
  if (sent.size() != received.size() * size_)
    throw Error("reduce_scatter: {} elements to {} on each of {} ranks", sent.size(), received.size(), size_);
  int const n = count(received.size());
  exec.fence(); // the kernels that fill `sent`
  auto const from = reachable(sent, true), to = reachable(received, false);
  return start(
      ledger_, {Collective::reduce_scatter, purpose, size_, std::int64_t(sent.size() * sizeof(T))},
      [&](MPI_Request* r) {
        return MPI_Ireduce_scatter_block(from.data(), to.data(), n, mpi_type<T>(), MPI_SUM, *comm_, r);
      },
      [sent, received, from, to, comm = comm_] { bring_back(to, received); });
}

template <class T>
Request Communicator::all_reduce(Execution const& exec, Vector<T> const& values, Purpose purpose) const {
  int const n = count(values.size());
  exec.fence(); // the kernels that fill `values`
  auto const host = reachable(values, true);
  return start(
      ledger_, {Collective::all_reduce, purpose, size_, std::int64_t(values.size() * sizeof(T))},
      [&](MPI_Request* r) {
        return MPI_Iallreduce(MPI_IN_PLACE, host.data(), n, mpi_type<T>(), MPI_SUM, *comm_, r);
      },
      [values, host, comm = comm_] { bring_back(host, values); });
}

Request Communicator::all_reduce_squares(Execution const& exec, Vector<float> const& sums,
                                         Purpose purpose) const {
  int const n = count(sums.size());
  exec.fence(); // the kernels that fill `sums`
  auto const host = reachable(sums, true);
  return start(
      ledger_, {Collective::all_reduce, purpose, size_, std::int64_t(sums.size() * sizeof(float))},
      [&](MPI_Request* r) {
        return MPI_Iallreduce(MPI_IN_PLACE, host.data(), n, MPI_FLOAT, square_sum_operation(), *comm_, r);
      },
      [sums, host, comm = comm_] { bring_back(host, sums); });
}

template <class T>
Request Communicator::broadcast(Execution const& exec, Vector<T> const& values, int root,
                                Purpose purpose) const {
  require_between("broadcast: root", root, 0, size_ - 1);
  int const n = count(values.size());
  exec.fence(); // the kernels that fill `values`
  auto const host = reachable(values, rank_ == root);
  return start(
      ledger_, {Collective::broadcast, purpose, size_, std::int64_t(values.size() * sizeof(T))},
      [&](MPI_Request* r) { return MPI_Ibcast(host.data(), n, mpi_type<T>(), root, *comm_, r); },
      [values, host, comm = comm_, here = rank_ == root] {
        if (!here) bring_back(host, values);
      });
}

template <class T>
Request Communicator::reduce(Execution const& exec, Vector<T> const& sent, Vector<T> const& received,
                             int root, Purpose purpose) const {
  require_between("reduce: root", root, 0, size_ - 1);
  if (rank_ == root && received.size() != sent.size())
    throw Error("reduce: {} elements into {}", sent.size(), received.size());
  int const n = count(sent.size());
  exec.fence(); // the kernels that fill `sent`
  auto const from = reachable(sent, true), to = reachable(received, false);
  return start(
      ledger_, {Collective::reduce, purpose, size_, std::int64_t(sent.size() * sizeof(T))},
      [&](MPI_Request* r) {
        return MPI_Ireduce(from.data(), to.data(), n, mpi_type<T>(), MPI_SUM, root, *comm_, r);
      },
      [sent, received, from, to, comm = comm_, here = rank_ == root] {
        if (here) bring_back(to, received);
      });
}

void Communicator::sum(std::span<double> values, Purpose purpose) const {
  if (ledger_)
    ledger_->record(Collective::all_reduce, purpose, size_, std::int64_t(values.size() * sizeof(double)));
  std::lock_guard const lock(detail::mpi_mutex());
  detail::check_mpi(
      MPI_Allreduce(MPI_IN_PLACE, values.data(), count(values.size()), MPI_DOUBLE, MPI_SUM, *comm_),
      "all_reduce");
}

double Communicator::sum(double value, Purpose purpose) const {
  sum(std::span(&value, 1), purpose);
  return value;
}

void Communicator::max(std::span<double> values) const {
  std::lock_guard const lock(detail::mpi_mutex());
  detail::check_mpi(
      MPI_Allreduce(MPI_IN_PLACE, values.data(), count(values.size()), MPI_DOUBLE, MPI_MAX, *comm_),
      "all_reduce");
}

double Communicator::max(double value) const {
  max(std::span(&value, 1));
  return value;
}

void Communicator::barrier() const {
  std::lock_guard const lock(detail::mpi_mutex());
  detail::check_mpi(MPI_Barrier(*comm_), "barrier");
}

#define PROWL_INSTANTIATE_MOVE(T)                                                                            \
  template Request Communicator::all_gather<T>(Execution const&, Vector<T> const&, Vector<T> const&,         \
                                               Purpose) const;                                               \
  template Request Communicator::broadcast<T>(Execution const&, Vector<T> const&, int, Purpose) const;
#define PROWL_INSTANTIATE_SUM(T)                                                                             \
  template Request Communicator::reduce_scatter<T>(Execution const&, Vector<T> const&, Vector<T> const&,     \
                                                   Purpose) const;                                           \
  template Request Communicator::all_reduce<T>(Execution const&, Vector<T> const&, Purpose) const;           \
  template Request Communicator::reduce<T>(Execution const&, Vector<T> const&, Vector<T> const&, int,        \
                                           Purpose) const;
PROWL_INSTANTIATE_MOVE(float)
PROWL_INSTANTIATE_MOVE(double)
PROWL_INSTANTIATE_MOVE(bfloat16)
PROWL_INSTANTIATE_SUM(float)
PROWL_INSTANTIATE_SUM(double)
#undef PROWL_INSTANTIATE_MOVE
#undef PROWL_INSTANTIATE_SUM

} // namespace prowl
