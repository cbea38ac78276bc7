#include <prowl/placement/bucket.hpp>

#include <prowl/core/index.hpp>
#include <prowl/placement/shard.hpp>

namespace prowl {

std::vector<Bucket> fill_buckets(std::span<Parameter const> parameters, std::span<std::size_t const> order,
                                 int ranks, std::int64_t element_bytes, std::int64_t cap) {
  require_between("bytes of an element", element_bytes, 1, 8);
  std::vector<Bucket> buckets;
  for (auto index : order) {
    require_index("parameter", index, parameters.size());
    require_shape(parameters[index]);
    auto const part = padded_rows(parameters[index].rows(), ranks) * parameters[index].columns();
    if (buckets.empty() || (buckets.back().part + part) * ranks * element_bytes > cap) buckets.emplace_back();
    auto& bucket = buckets.back();
    bucket.entries.push_back({index, bucket.part});
    bucket.part += part;
  }
  return buckets;
}

} // namespace prowl
